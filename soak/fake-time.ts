/** Library of Debian's package faketime that gives a process another wall clock. */
export const fakeTimeLibrary = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`
