/** That of package.json, which lies elsewhere once it is built; a test compares them. */
export const versionText = '0.1.0'
