/** Variables that are not read like the others. */

export const secretName = "STORE_API_CLIENT_SECRET"

export const folderName = "STORE_API_TOKEN_FOLDER"
