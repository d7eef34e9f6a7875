/**
 * Phrases that this project does not write, and what to write instead. A space in a pattern matches any white space.
 * Each pattern finds its examples.
 */

/** Where a sentence starts: at the start of a text or list item, after an empty line, or after a full stop or colon. */
const START = String.raw`(?<=(?:\0|[.:;!?(]\s|\n[ \t]*\n|\n[ \t]*-)\s*)`

/** The nouns after the second article of “one namespace a module”. */
const COUNTED =
  "(?:body|call|caller|case|client|clock|command|connection|entry|error|fiber|file|flag|folder|host|key|line|module|" +
  "name|option|origin|package|page|process|provider|reason|request|response|row|run|scope|server|store|test|token)"

/** Words between two articles that do not name a thing. */
const LINKS =
  "after|and|as|at|before|but|by|for|from|had|if|in|into|like|met|not|of|on|or|over|per|sent|such|than|that|to|under|" +
  "until|when|where|which|with|without"

const sentence = (pattern, instead, ...examples) => ({
  regex: new RegExp(START + pattern.replaceAll(" ", "\\s+"), "g"),
  instead,
  examples
})

const phrase = (pattern, instead, ...examples) => ({
  regex: new RegExp(`(?<![\\w-])(?:${pattern.replaceAll(" ", "\\s+")})(?!\\w)`, "gi"),
  instead,
  examples
})

export const phrases = [
  sentence(
    "(?:[Ww]ho|[Ww]hoever) (?![^.?!]*\\?)",
    "Give the clause a subject: “To read the token itself, use the provider.”",
    "Who wants the token itself asks the provider",
    "Of one who started nothing: who waits joins"
  ),
  sentence(
    "What (?![^.?!]*\\?)(?!(?:an?|each|every|if|it|our|the|they|this|to|we|you|your) |\\u0001)",
    "Name the subject: “Bugs this fixes”, “Evidence”, “A publish failure does not …”.",
    "What vanishes",
    "What was shown",
    "What cannot be shared is had all the same"
  ),
  sentence("How \\w+ (?:is|are|was|were) \\w+$", "Use a noun: “Methodology”.", "How it was had"),
  phrase(
    "(?:is|are|was|were|be|been|being) had",
    "Write “acquire”, “is available”.",
    "when no other token can be had",
    "the token is had",
    "a token to be had"
  ),
  phrase(
    "(?<!there )(?:is|are|was|were|be) no (?!longer|more|less|fewer|greater|later|earlier)\\w+",
    "Negate the verb: “does not affect the caller”, “has no …”.",
    "is no affair of the caller"
  ),
  phrase(
    "(?:nobody|somebody|anybody|everybody|no one)(?: else)?",
    "Name the actor: “callers never see this error”, “is private to the package”.",
    "is nobody's",
    "nobody else's",
    "nobody who asks for a token meets it",
    "somebody else renews it"
  ),
  phrase(
    "(?<!the )others (?:also |never |still )?" +
      "(?:are|ask|can|do|get|have|hold|may|must|need|read|see|share|take|use|wait|will|write)",
    "Name the actor: “the other processes share it”.",
    "comes before anything that others do"
  ),
  phrase("hous(?:e|es|ed)", "Write “layout”, “repository”, “process”.", "the rules of the house"),
  phrase("floors?", "Write “layer”, “minimum”, “lowest version”.", "the floor of the layers"),
  phrase("(?<!in[- ])flights?", "Write “in-flight request”, “in-flight acquisition”.", "one flight for all callers"),
  phrase("buys?|buying|bought", "Write “request”, “acquire”.", "each call buys a token"),
  phrase("mend(?:s|ed|ing)?", "Write “fix”.", "The newest release is the one that is mended"),
  phrase(
    "(?:lives|(?<!-)lived|dies|died|dying)",
    "Write “expires”, “is valid”, “stops”, “is in”.",
    "the token held is served while it lives",
    "the process died"
  ),
  phrase(
    "(?:dead|live|living) tokens?|tokens? (?:(?:that|which) )?live|tokens? (?:is|are|was|were) (?:dead|alive)",
    "Write “valid”, “expired”, “with a lifetime of”.",
    "it sends a dead token",
    "with tokens that live for a minute",
    "while the token is alive"
  ),
  phrase("(?<!-)life(?!-|cycle| cycle)", "Write “lifetime” or “remaining lifetime”.", "a token that is past its life"),
  phrase("(?:stands?|stood|standing) (?:up)?on", "Write “depend on”.", "it stands on the provider"),
  phrase(
    "hand(?:s|ed|ing)? (?:[\\w-]+ )?(?:over|on|out|back)|hand(?:ed|ing)|hands (?:an?|the|it|its|them|every|each|all|no) \\w+",
    "Write “pass”, “return”.",
    "hand over the token",
    "hands the token to the caller",
    "the token is handed to callers"
  ),
  phrase("tells?|told|telling", "Write “report”, “distinguish”, “show”.", "tell the caller", "the server told it"),
  phrase("walk(?:s|ed|ing)?", "Write “check”, “visit”, “list”.", "walk the folders"),
  phrase("besides", "Write “also” or “in addition”.", "fails besides with"),
  phrase("by (?:itself|themselves)", "Write “automatically” or “alone”.", "it renews by itself"),
  phrase("all the same", "Write “anyway”.", "is acquired all the same"),
  phrase("in vain", "Write “without effect”.", "it asks in vain"),
  phrase("for want of", "Write “without”.", "pass for want of anything to look at"),
  phrase("meanwhile", "Leave it out, or write “during the …”.", "Meanwhile the callers wait"),
  phrase("end(?:s|ed|ing)? with(?: code| status)? \\d", "Write “exits with code 1”.", "the process ends with 1"),
  phrase(
    `(?:(?<!(?:after|before|for|in|of|on|with|without) )(?:an?|one) (?!(?:${LINKS}) )[\\w-]+(?<!s)|` +
      `(?:two|three|four|\\d+) (?:[\\w-]+s|[kM]?B)) an? ${COUNTED}`,
    "Write “one namespace per module”.",
    "one namespace a module",
    "one comparison a clock",
    "two requests a process"
  ),
  phrase("once an? \\w+'s", "Write “hourly”, “once per …”.", "once an hour's"),
  phrase(
    "(?:an?|the|its|their|this|every|each|no|any|one|first|last|next|late|of|with|without|for) answers?",
    "Write “response”.",
    "an answer made when the token came",
    "the answer of the endpoint"
  ),
  phrase(
    "(?:does|do|did) not answer|never answers?",
    "Write “does not respond”.",
    "the endpoint did not answer",
    "a store that never answers"
  ),
  phrase("(?:said|says|say|saying) no", "Write “rejected” or “refused”.", "the API said no"),
  phrase(
    "the (?:secret|key|id|password|clock)s? of (?:the|this|that|an?|its) \\w+",
    "Write “the client secret”, “the cipher key”.",
    "the secret of the client",
    "the key of the cipher",
    "The clock of this machine"
  ),
  phrase(
    "(?:an?|the|one|each|every) [\\w-]+, that (?!is,)\\w+",
    "A clause that defines takes no comma: “a token that is …”.",
    "a token, that is expired"
  ),
  phrase("cool[- ]downs?", "Write “cooldown”.", "the cool-down ends"),
  phrase("those who", "Name the actor: “callers that wait”.", "a lease and a look of those who wait for it"),
  phrase(
    "(?:after|for|from|in|of|with) so (?:long|many|often)(?! (?:as|that))",
    "Write the number, “this many”, “this long”.",
    "from so many fibers on",
    "how long after its expiry, for so many hours"
  ),
  phrase(
    "where nothing else is said|where there (?:is|are) (?:any|none)",
    "Write “unless a section says otherwise”, “if there is one”.",
    "tokens of an hour where nothing else is said",
    "are found where there are any"
  ),
  phrase(
    "as (?:the )?[\\w./-]+ has it",
    "Write “as in …”.",
    "labelled as the page has it",
    "as alerts.test.yml has it"
  ),
  phrase("(?:comes?|came) of (?:it|them|this)", "Name the result.", "what is said to come of them"),
  phrase("(?:is|are|was|were|be|been) answered", "Write “gets a response”.", "the next call is answered"),
  phrase("anew", "Write “again”.", "the tables are made anew"),
  phrase("for ever", "Write “forever”, “without end”, “hangs”.", "a test that waits for ever"),
  phrase("to the letter", "Write “exactly”.", "each page is followed to the letter"),
  phrase("only just", "Write “a moment before”.", "tokens that were acquired only just"),
  phrase("at the soonest", "Write “at least”.", "over after 2.5 s at the soonest")
]
