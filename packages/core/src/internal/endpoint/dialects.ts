/** The error dialects of token endpoints: the names under which their bodies have a code, a text, or both. */

/** The names of an error code. The first one in a body counts. */
export const codes = [
  "error",
  "ErrorCode",
  "errorCode",
  "error_code",
  "code",
  "errorcode",
  "errcode",
  "errCode",
  "err_code",
  "type"
]

/** The names of an error text. The first one in a body counts. */
export const texts = [
  "error_description",
  "Error",
  "errorSummary",
  "message",
  "errmsg",
  "errMsg",
  "err_msg",
  "errorMessage",
  "error_message",
  "msg",
  "status_message",
  "statusMessage",
  "faultstring",
  "description",
  "detail",
  "reason",
  "title"
]

/** The names of the objects that contain a code or a text. In a list, the first item counts. */
export const containers = ["error", "fault", "detail", "response", "errors"]
