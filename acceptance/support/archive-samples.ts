import { gunzipSync } from 'node:zlib'

const unpack = (text: string) => gunzipSync(Buffer.from(text, 'base64'))

/**
 * `eicar.com`, the test virus followed by blanks, as 7-Zip packs it, in formats that only a compressor can write.
 * Made with `7z a -t<type> -m0=<method> -mtm=off`; the password is `secret`, the hidden list is `-mhe=on`.
 */
export const samples = {
  'zip with LZMA': unpack(
    'H4sIAAAAAAACAwvwZmaxZ2Bi4GNgYFBkCLt04lAkAwNDAwMDAycDA0NqZnJikV5yfq4EJytDLIMAAwODDq/rI2VvC85/KjrR3mYTDO94q5hu' +
      'M7q/3tDH5v55K+/S4qfdJ+o6NzfEfZ8i37vysNwvzxzWPy2sUYV/LHdNSu2e7rz8zt3N05btmVD//7vyHoYAb0Yme2bcLoAAhYZtjQzI7gnw' +
      'ZmUDCTAyMDKYQ5UzMAAA2zJhmM0AAAA=',
  ),
  'zip with PPMd': unpack(
    'H4sIAAAAAAACAwvwZmaxZ2BgSGJgYFBkCLt04pA7AwNDAwMDAycDA0NqZnJikV5yfi47Q/idvKC6dS7+ppeLWXeaGZfY571JeRh0QqRYVPX6' +
      'j8Xih37cmx/w6+4Ob/UDJoW9dlPuFmzYveYBk2DKm+6giTsv2L03SP7LwBDgzchkz4zbPghQaNjWyIBse4A3KxtIgJGBkcGcgYEhD6wMAPMY' +
      'c267AAAA',
  ),
  'zip with a password': unpack(
    'H4sIAAAAAAACAwvwZmYRYWBk4GBgYFBkCLt04lAkAwNDAwMDAycDA0NqZnJikV5yfm6e7aLuRZ8mV9n/WL1sQV7QFf6KuatT9Qor842eb9tx' +
      '8+Bzh7Y19VIs3zmCv3w2DnedFPP5qlXGv6KdR95uDbM+pnXrOveXx4HClaKfG0//rOc/ukShxvbFvv9/5m/xCvBmZLJnxu0CCFBo2NbIgOye' +
      'AG9WNpAAIwMjgzlUOQMDACncZFfNAAAA',
  ),
  'zip with AES': unpack(
    'H4sIAAAAAAACAwvwZmYxZmBkSGZgYFBkAIFMINHAwMDAycDNkJqZnFikl5yfyziTnYGJwdGVmYNhwrYwpTavz+u5Hj+dEprL7yLEfeG45RJ5' +
      '7rS9fG7C6ccnJKwvWia8dnnvuzUBil0pqhsVT19yiM+Ssvn6zCxOc5GVk2Lqc92dL3taflY1eF5P+fDpQ5zh34y7x31Mg/UZ/jbxMyu8XrJe' +
      'J3hb7IoAb0Yme2bcjoMAhYZtjSAam1MDvFnZQHKMDIwMTgwMDLPBOgDJBnnj8wAAAA==',
  ),
  '7z': unpack(
    'H4sIAAAAAAACAzOv2rNeXYaBxUNomW0QAwT4QWmpE/O2PmCoZ/CKZdDhdX2k7G3B+U9FJ9rbbILhHW8V021G99cb+tjcP2/lXVr8tPtEXefm' +
      'hrjvU+R7Vx6W++WZw/qnhTWq8I/lrkmp3dOdl9+5u3naFBkGBgZGFjYGRs4gBnZuRgZGRUVGBp6GBgYOLsawSycOMTCwMkpyMyCAoChDKkMm' +
      'QzJDIkMRgx5DMkM+Qy4DA4MoGyODQsO2RgYGAEczYC7AAAAA',
  ),
  '7z with BZip2': unpack(
    'H4sIAAAAAAACAzOv2rNeXYaBRTaf2TuHAQL8oPR/lTN8TlEZloaOkWrBkTkFRX0MDIrzGtKq2A7kp96PZWBSYPDoyjAxycg4+crWd+WrzJbg' +
      'KwwMBoyLXVct53n3dnNFu7pw+ycO5vkNk4sDp3W0HHM75Kmv3yQne0Sx1fThAtufnTMZubL0nnQVLFS48eCpDCMLGwMjZw4DOzcjAyMzCxMT' +
      'T0MDAwcXY9ilE4cYGFgZJbkZEEBQlCGVIZMhmSGRoYhBjyGZIZ8hl4GBQZSNkUGhYVsjAwMAEwZP9NoAAAA=',
  ),
  '7z with Deflate': unpack(
    'H4sIAAAAAAACAzOv2rNeXYaB5eYdyz5fBgjwg9ImqrN9lx505GpQEGA4sF5FIuWh78dbi9q4E7vzFEX/Ltn/vSNt1l2Wr8YXUvOsZpsy256q' +
      'XH9HW7lKY5fREwbVjBM97NP2ZvVN/dqULWLkm/mm7gcDIwsbAyOnLwM7NyMDIzMLIwdPQwMDBxdj2KUThxgYWBkluRkQQFCUIZUhkyGZIZGh' +
      'iEGPIZkhnyGXgYFBlI2RQaFhWyMDAwBE9ZXquwAAAA==',
  ),
  '7z with a password': unpack(
    'H4sIAAAAAAACAzOv2rNeXYaB5YDiiwsJDBAQB6WFAxd+kHl891S01Mq7h3e6tIjILQ78ekpvtu22zMmTD7ZqK/H9bW3K3LOnuyMvKMySrYnl' +
      'T+auvle9Ku5iQVOe3b+1Pqj27Rznd8c6PSoYazunfvrjNmv9NNlY7s8rUyckHGHWST/9+w4HIwsbAyNnAgM7NyMDkwrbR3ZGoWD+rK0ZVnNq' +
      'WP9YHpoWapXn3KKoyMjAyMAT1NDAwMHFGHbpxCEGBlZGSQZBUYZUhkyGZIZEhiIGPYZkhnyGXAYGBlE2RgaFhm2NDAwA6px0Ld4AAAA=',
  ),
  '7z with a hidden list': unpack(
    'H4sIAAAAAAACAwEOAfH+N3q8ryccAARnWXLNwAAAAAAAAAAuAAAAAAAAAM7uOKMoyouoW0DG/2ROHdpOgeE9z89js+0xR4UU1CEW0mO2cc78' +
      'fmsdK4AfRlk5rQerl4qXHwqu5bFyqcKRoSVg57SHB0KqsPWYif3gnWpxdMNm3AH0TWYL4pChylJ9LW+VPZnko0qD+vBHA5Gu9uHcMniGxlfU' +
      '7BDsCcvJU0UGkow7wCzCCunTWMItOb2Z9um8hnzMle4qM3C/K38R9rBpUBV5hnboVLahX1eLE7UjgW7t8+45QFccbTiALwaynCz5klwXBmAB' +
      'CWAABwsBAAEkBvEHARJTD2HJwyFFM6bmYJaDoDoU8kgMXgoBId6X7wAAwFZkPw4BAAA=',
  ),
  WIM: unpack(
    'H4sIAAAAAAACA82SP2gTYRjGfxdQiiJIVwfTkqJR0+Zq2lQ5j365uyQfJrnj7mLiH4raCnVQQRSyCClujo6COIiTIAjSsTgoOGZxUdTJxUXF' +
      'wUHwJHfXf2lTWgTxveHued/neb/n/e6teg1ZBToA+xTaRPHr2670m8epdwOHpq/b2aVnCt0H5qJywklEHzFmMcKJF4l1+J9Hc8IeckamhXM+' +
      'd8E515zIHXZm0nnDSOfvpCxpCDfj+aJmCtfMiJovz0i37mV8y/MzRVmxhlLlo+Ujyb+IgdjHfPze3w5EEARBa5v+O7vv/fx064Oy07mX/1uy' +
      'vbjQPW/7Qv3tx+cPlfKe96M/jl2u733yavCkvF94OnfxdS91kCtcZZZL3GSUWW5wra+PTg+OtmfTU5R4o5QV6hpF6/bBLw/uHvheejTSeTn/' +
      'daGz9Pl08FujgaSKjoaPjY+gQoGz+Fh46ExygnE0xvrUtVAvKGGRRFLDxKLJKYZRGQ4ZNQRVLHTUsNMq1jCRuBjY1Knho5MNORvzGkUkFax1' +
      '2ajjZpV+E6mMM7XlRAYuFgIfiR12kyt+y0hKlHEQuLHfFllUTEzy5DApht03MjUq2DR6tEXyTGFynAIqVqjt5XVzW7mqIPDwqWKHN9e9D+O/' +
      'm2AnLsfW7FWElzf1D32EmoBqBQAA',
  ),
}
