/**
 * Phrases that this project does not write, and what to write instead. A space in a pattern matches any white space.
 * Each pattern finds its examples.
 */

/** Where a sentence starts: at the start of a text or list item, after an empty line, or after a full stop or colon. */
const START = String.raw`(?<=(?:\0|[.:;!?(]\s|\n[ \t]*\n|\n[ \t]*-)\s*)`

/** The nouns after the second article of “one namespace a module”. */
const COUNTED =
  "(?:call|client|clock|command|file|key|line|module|origin|package|page|process|provider|request|test|token)"

const pattern = (flags, before, after) => (source, instead, ...examples) => ({
  regex: new RegExp(`${before}(?:${source.replaceAll(" ", "\\s+")})${after}`, flags),
  instead,
  examples
})

const sentence = pattern("g", START, "")
const phrase = pattern("gi", "(?<![\\w-])", "(?!\\w)")

export const phrases = [
  sentence(
    "(?:[Ww]ho|[Ww]hoever) (?![^.?!]*\\?)",
    "Give the clause a subject: “To read the token itself, use the provider.”",
    "Who wants the token itself asks the provider",
    "Of one who started nothing: who waits joins"
  ),
  sentence(
    "What (?![^.?!]*\\?)(?!(?:an?|each|every|if|it|our|the|they|this|to|we|you|your) |\\u0001)",
    "Name the subject: “Bugs this fixes”, “Evidence”.",
    "What vanishes"
  ),
  sentence("How \\w+ (?:is|are|was|were) \\w+$", "Use a noun: “Methodology”.", "How it was had"),
  phrase(
    "(?:is|are|was|were|be|been|being) had",
    "Write “acquire”, “is available”.",
    "when no other token can be had"
  ),
  phrase(
    "(?<!there )(?:is|are|was|were|be) no (?!longer|more|less|fewer|greater|later|earlier)\\w+",
    "Negate the verb: “does not affect the caller”, “has no …”.",
    "is no affair of the caller"
  ),
  phrase("(?:is|are) (?:no|any|some)body's", "Write “is private to”, “does not affect”.", "is nobody's"),
  phrase("hous(?:e|es|ed)", "Write “layout”, “repository”, “process”.", "the rules of the house"),
  phrase("floors?", "Write “layer”, “minimum”, “lowest version”.", "the floor of the layers"),
  phrase("buys?|buying|bought", "Write “request”, “acquire”.", "each call buys a token"),
  phrase("mend(?:s|ed|ing)?", "Write “fix”.", "The newest release is the one that is mended"),
  phrase(
    "(?:lives|(?<!-)lived|dies|died|dying)|(?:dead|live|living) tokens?|tokens? (?:(?:that|which) )?live",
    "Write “expires”, “is valid”, “stops”, “is in”.",
    "the token held is served while it lives",
    "it sends a dead token"
  ),
  phrase("(?<!-)life(?!-|cycle| cycle)", "Write “lifetime” or “remaining lifetime”.", "a token that is past its life"),
  phrase("in vain", "Write “without effect”.", "it asks in vain"),
  phrase("for want of", "Write “without”.", "pass for want of anything to look at"),
  phrase("all the same", "Write “anyway”.", "is acquired all the same"),
  phrase(
    `(?:one (?!(?:after|by|for|from|in|of|per|to|with) )[\\w-]+(?<!s)|(?:two|three|four|\\d+) [\\w-]{3,}s) an? ${COUNTED}`,
    "Write “one namespace per module”.",
    "one namespace a module",
    "two requests a process"
  ),
  phrase(
    "the (?:secret|key|id|password|clock)s? of (?:the|this|that|an?|its) \\w+",
    "Write “the client secret”, “the cipher key”.",
    "the secret of the client"
  ),
  phrase(
    "(?:an?|the|one|each|every) [\\w-]+, that (?!is,)\\w+",
    "A clause that defines takes no comma: “a token that is …”.",
    "a token, that is expired"
  ),
  phrase("cool[- ]downs?", "Write “cooldown”.", "the cool-down ends")
]
