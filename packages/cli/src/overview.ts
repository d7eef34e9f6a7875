/** What `store-api` says of itself; each command says more. */
export const overview = `store-api: access tokens for the store API suite

  store-api token               prints an access token for another program; it is kept for the next run
  store-api call METHOD PATH    calls an API with a token, and prints the answer as it comes
  store-api check [PATH]        walks the way to a token step by step, and says what is wrong on it
  store-api status              tells whether a token is stored, and for how long it is good
  store-api emulator            starts the access-token service and a protected API on this machine

  store-api COMMAND --help      the flags of a command
  store-api --completions bash  a script for the shell: sh, bash, fish or zsh
  store-api --version

Settings come from flags, from the environment and from the file .env (or that of --dotenv), in this order. With --profile NAME
(or STORE_API_PROFILE) they come from flags and from NAME.env in the user's folder of profiles.

  STORE_API_AUTH_URL       --auth-url      base of the access-token service
  STORE_API_URL            --api-url       base of the APIs, for calls
  STORE_API_CLIENT_ID      --client-id     the client's API key
  STORE_API_CLIENT_SECRET  --secret-file   its secret; also --secret-stdin, and on a terminal it is asked for
  STORE_API_TOKEN_FOLDER   --token-folder  where tokens are kept

Exit codes:

    0  done
    1  a fault of this program
    2  the command line cannot be used
    3  the configuration: something is missing, or cannot be used; the clock is wrong (check)
    4  no token, and asking again will not help
    5  no token now; asking again later may help
    6  the call had no answer
    7  the call was answered with a status of 400 or more (call --fail), or not as an API answers (check)
  130  interrupted; 143 by SIGTERM
`
