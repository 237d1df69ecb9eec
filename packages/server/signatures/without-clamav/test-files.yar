// The EICAR test file, for a machine without ClamAV, where ClamAV's signatures are not loaded.
// The string is in hex, so that scanners do not report this file.

rule Eicar_Test_Signature
{
    meta:
        description = "The EICAR anti-virus test file"
        author = "Assay"
        date = "2026-11-15"
    strings:
        $test = { 58 35 4f 21 50 25 40 41 50 5b 34 5c 50 5a 58 35 34 28 50 5e 29 37 43 43 29 37 7d 24 45 49 43 41 52 2d 53 54 41 4e 44 41 52 44 2d 41 4e 54 49 56 49 52 55 53 2d 54 45 53 54 2d 46 49 4c 45 21 24 48 2b 48 2a }
    condition:
        $test at 0 and filesize < 129
}
