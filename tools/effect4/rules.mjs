/** The differences between Effect 3.22 and Effect 4.1, as far as our sources meet them. */
import ts from "typescript"

/** Modules with another name. Where a module is, is seen from what is installed. */
export const modules = {
  ConfigError: "Config",
  Either: "Result",
  Error: "PlatformError",
  HttpLayerRouter: "HttpRouter",
  NodeContext: "NodeServices",
  ParseResult: "SchemaIssue"
}

const renamed = {
  Cause: {
    failureOption: "findErrorOption",
    isDie: "hasDies",
    isInterruptedOnly: "hasInterruptsOnly",
    isTimeoutException: "isTimeoutError"
  },
  Clock: { currentTimeNanos: "monotonicTimeNanos" },
  Config: {
    duration: "Duration",
    integer: "Int",
    nonEmptyString: "NonEmptyString",
    redacted: "Redacted",
    string: "String"
  },
  Context: { unsafeGet: "getUnsafe" },
  DateTime: {
    lessThan: "isLessThan",
    lessThanOrEqualTo: "isLessThanOrEqualTo",
    unsafeMake: "makeUnsafe"
  },
  Deferred: { unsafeDone: "doneUnsafe" },
  Duration: {
    decode: "fromInputUnsafe",
    DurationInput: "Input"
  },
  Effect: {
    async: "callback",
    catchAll: "catch",
    catchAllCause: "catchCause",
    catchAllDefect: "catchDefect",
    either: "result",
    fork: "forkChild",
    forkDaemon: "forkDetach",
    locally: "provideService",
    locallyWith: "updateService",
    mapInputContext: "updateContext",
    tapErrorCause: "tapCause",
    validateAll: "validate",
    zipLeft: "tap",
    zipRight: "andThen"
  },
  Either: {
    Either: "Result.Result",
    isEither: "Result.isResult",
    isLeft: "Result.isFailure",
    isRight: "Result.isSuccess",
    left: "Result.fail",
    mapLeft: "Result.mapError"
  },
  Encoding: {
    decodeBase64String: "Base64.decodeString",
    encodeBase64: "Base64.encode",
    encodeBase64Url: "Base64Url.encode",
    encodeHex: "Hex.encode"
  },
  Exit: { isInterrupted: "hasInterrupts" },
  Fiber: { RuntimeFiber: "Fiber" },
  FiberRef: {
    currentLoggers: "References.CurrentLoggers",
    currentMinimumLogLevel: "References.MinimumLogLevel"
  },
  Headers: { currentRedactedNames: "CurrentRedactedNames" },
  HttpBody: { unsafeJson: "jsonUnsafe" },
  HttpClient: {
    currentTracerDisabledWhen: "TracerDisabledWhen",
    currentTracerPropagation: "TracerPropagationEnabled"
  },
  HttpClientRequest: { bodyUnsafeJson: "bodyJsonUnsafe", del: "delete" },
  HttpMiddleware: { currentTracerDisabledWhen: "TracerDisabledWhen" },
  HttpServerResponse: { unsafeJson: "jsonUnsafe" },
  Layer: { scoped: "effect", scopedDiscard: "effectDiscard", unwrapEffect: "unwrap" },
  Logger: {
    jsonLogger: "formatJson",
    logfmtLogger: "formatLogFmt",
    stringLogger: "formatSimple",
    structuredLogger: "formatStructured"
  },
  NodeHttpClient: {
    layer: "layerNodeHttp",
    layerUndiciWithoutDispatcher: "layerUndiciNoDispatcher",
    layerWithoutAgent: "layerNodeHttpNoAgent",
    makeAgentLayer: "layerAgentOptions"
  },
  Option: { fromNullable: "fromNullishOr" },
  ParseResult: { ParseIssue: "SchemaIssue.Issue" },
  Predicate: { isReadonlyRecord: "isReadonlyObject" },
  Schema: {
    DateTimeUtc: "DateTimeUtcFromString",
    DateTimeUtcFromSelf: "DateTimeUtc",
    decode: "decodeEffect",
    decodeUnknownEither: "decodeUnknownResult",
    encode: "encodeEffect",
    OptionFromSelf: "Option",
    parseJson: "fromJsonString",
    Redacted: "RedactedFromValue",
    RedactedFromSelf: "Redacted",
    typeSchema: "toType"
  },
  Ref: { unsafeMake: "makeUnsafe" },
  Scope: { extend: "provide" },
  Stream: { repeatEffect: "fromEffectRepeat" },
  TestClock: { currentTimeMillis: "Clock.currentTimeMillis" }
}

/** Members with another name, or of another module, and otherwise the same. */
export const members = Object.fromEntries(
  Object.entries(renamed).flatMap(([module, names]) =>
    Object.entries(names).map((
      [name, to]
    ) => [`${module}.${name}`, to.includes(".") ? to : `${module}.${to}`])
  )
)

/** Properties of values. `of`: only in sources that have it. */
export const properties = {
  Default: { of: /\bLayerMap\b|\bStores\b/, to: "layer" },
  epochMillis: "epochMilliseconds",
  left: { of: /\bEither\b|Effect\.either/, to: "failure" },
  onLeft: { of: /\bEither\b|Effect\.either/, to: "onFailure" },
  onRight: { of: /\bEither\b|Effect\.either/, to: "onSuccess" },
  right: { of: /\bEither\b|Effect\.either/, to: "success" },
  unsafeCurrentTimeMillis: "currentTimeMillisUnsafe",
  unsafeCurrentTimeNanos: "monotonicTimeNanosUnsafe",
  unsafeUpdate: "updateUnsafe",
  unsafeValue: "valueUnsafe"
}

/** Two classes with a reason as text are one class with six classes of reasons. */
const httpError = ({ r, reason: [reason], response, rest }) =>
  `new HttpClientError.HttpClientError({ reason: new HttpClientError.${reason.text}Error({ ${
    [r && "request: $r", response && "response: $response", rest.length > 0 && "$rest"].filter(
      Boolean
    ).join(", ")
  } }) })`

/** Another shape: a pattern and what is written in its place. */
export const patterns = {
  "$e._tag === \"SystemError\" ? $e.reason : $e._tag": "$e.reason._tag",
  "type Schema.Schema<$$T>": "Schema.Codec<$$T>",
  "Context.Tag($id)<$$T>()": "Context.Service<$$T>()($id)",
  "Deferred.unsafeMake(FiberId.none)": "Deferred.makeUnsafe()",
  // A service of each client.
  "Context.omit(SqlClient.TransactionConnection)": "Context.omit(sql.transactionService)",
  "Config.string($name).pipe(Config.validate($v), $$more)":
    "Config.NonEmptyString($name).pipe($$more)",
  "Context.Reference<$T>()($id, $options)": (
    { options: [{ properties: [{ initializer }] }] }
  ) => `Context.Reference<${initializer.type.getText()}>($id, $options)`,
  "Clock.clockWith(Effect.succeed)": "Clock.Clock",
  "Clock.make()": "Clock.Clock.defaultValue()",
  "cache.get($key)": "Cache.get(cache, $key)",
  // Effect 4 fails with the error itself, also within a span.
  "Cause.originalError(Cause.squash($cause))": "Cause.squash($cause)",
  "Cause.pretty($cause, { renderErrorCause: true })": "Cause.pretty($cause)",
  // Without parentheses, an arrow function would have a block as its body.
  "Data.struct($fields)": "($fields)",
  // A test clock of Effect 4 does not wait for fibers that have not started.
  "Effect.forkDaemon(Effect.interruptible($effect))":
    "Effect.forkDetach($effect, { startImmediately: true })",
  "Effect.intoDeferred($deferred)": "Deferred.into($deferred)",
  "FiberRef.get(FiberRef.currentMetricLabels)": "Effect.context<never>()",
  "Effect.dieMessage($message)": "Effect.die(new Error($message))",
  "Effect.withClock($$effect, $clock)": "Effect.provideService($$effect, Clock.Clock, $clock)",
  "Effect.withUnhandledErrorLogLevel(Option.some($level))":
    "Effect.provideService(References.UnhandledLogLevel, $level)",
  "Effect.withUnhandledErrorLogLevel(Option.none())":
    "Effect.provideService(References.UnhandledLogLevel, undefined)",
  "Effect.timeoutFail({ duration: $d, onTimeout: () => $e })":
    "Effect.timeoutOrElse({ duration: $d, orElse: () => Effect.fail($e) })",
  "Effect.transposeMapOption($f)":
    "(option) => Effect.transposeOption(Option.map(option, $f))",
  "Effect.whenEffect($effect, $condition)": "Effect.when($effect, $condition)",
  "Effect.withSpan($name, { captureStackTrace: false })":
    "Effect.withSpan($name, undefined, { captureStackTrace: false })",
  // An `Either` is an effect, and a `Result` is not.
  "Encoding.decodeBase64Url(entry)": "Effect.fromResult(Base64Url.decode(entry))",
  "HttpApiEndpoint.get($name, $path).addSuccess($schema)":
    "HttpApiEndpoint.get($name, $path, { success: $schema })",
  "HttpApiEndpoint.post($name, $path).setPayload($payload).addSuccess($schema)":
    "HttpApiEndpoint.post($name, $path, {\npayload: $payload,\nsuccess: $schema\n})",
  "HttpLayerRouter.addHttpApi($api)": "HttpApiBuilder.layer($api)",
  "Layer.succeed(Bearer, { bearer: ($token) => $check })":
    "Layer.succeed(Bearer, { bearer: (response, { credential: $token }) => Effect.andThen($check, response) })",
  "HttpApiMiddleware.Tag<$$T>()($id, { failure: $error, ...$rest })":
    "HttpApiMiddleware.Service<$$T>()($id, { error: $error, $rest })",
  "HttpApiSchema.annotations({ status: $status })": "{ httpApiStatus: $status }",
  "HttpClient.withTracerPropagation($client, $enabled)":
    "HttpClient.transformResponse($client, Effect.provideService(HttpClient.TracerPropagationEnabled, $enabled))",
  "Metric.histogram($name, MetricBoundaries.fromIterable($boundaries), $description)":
    "Metric.histogram($name, {\ndescription: $description,\nboundaries: $boundaries\n})",
  "Metric.increment($metric)": "Metric.update($metric, 1)",
  "Metric.tagged($$metric, $key, $value)":
    "Metric.withAttributes($$metric, { [$key]: $value })",
  "NodeRuntime.runMain($effect, { disablePrettyLogger: true })":
    "NodeRuntime.runMain($effect)",
  "PlatformConfigProvider.layerFileTreeAdd({ rootDirectory: $folder })":
    "ConfigProvider.layerAdd(ConfigProvider.fromDir({ rootPath: $folder }))",
  "NodeHttpServer.make($server, { host: $host, port: $port })":
    "NodeHttpServer.make($server, { host: $host, port: $port, disablePreemptiveShutdown: true })",
  "NodeHttpServerRequest.toIncomingMessage($r)":
    "NodeHttpServerRequest.toIncomingMessage($r) as IncomingMessage",
  "NodeHttpServerRequest.toServerResponse($r)":
    "NodeHttpServerRequest.toServerResponse($r) as ServerResponse",
  "Schema.Literal($a, $$more)": ({ more }) =>
    more.length === 0 ? "Schema.Literal($a)" : "Schema.Literals([$a, $$more])",
  "Schema.Record({ key: $key, value: $value })": "Schema.Record($key, $value)",
  "Schema.NonNegativeInt": "Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))",
  "Schema.String.pipe(Schema.pattern($regex))":
    "Schema.String.check(Schema.isPattern($regex))",
  "Schema.String.pipe(Schema.pattern($regex), Schema.compose(Schema.NumberFromString))":
    "Schema.String.check(Schema.isPattern($regex)).pipe(Schema.decodeTo(Schema.NumberFromString))",
  "Schema.Union($$schemas)": "Schema.Union([$$schemas])",
  "Schema.optionalWith($schema, { as: \"Option\" })": "Schema.OptionFromOptional($schema)",
  "Schema.optionalWith(Schema.transform($from, $to, $options), { default: () => $x })":
    "$from.pipe(\nSchema.decodeTo($to, SchemaTransformation.transform($options)),\n" +
    "Schema.withDecodingDefaultType(Effect.succeed($x))\n)",
  "Schema.optionalWith($schema, { nullable: true, default: () => $x })":
    "Schema.NullOr($schema).pipe(\nSchema.decodeTo(Schema.toType($schema), SchemaTransformation.transform({\n" +
    "decode: (value) => value ?? $x,\nencode: (value) => value\n})),\n" +
    "Schema.withDecodingDefaultType(Effect.succeed($x))\n)",
  "Schema.propertySignature($schema).pipe($default)": "$schema.pipe($default)",
  "Schema.transform($from, $to, $options)":
    "$from.pipe(Schema.decodeTo($to, SchemaTransformation.transform($options)))",
  "Schema.withConstructorDefault(() => $x)":
    "Schema.withConstructorDefault(Effect.succeed($x))",
  "ConfigProvider.fromMap($map)":
    "ConfigProvider.fromEnvRecord(Object.fromEntries($map), { preserveEmptyStrings: true })",
  "DateTime.add($x, { millis: $n })": "DateTime.add($x, { milliseconds: $n })",
  "DateTime.distanceDuration($a, $b)": "Duration.abs(DateTime.distance($a, $b))",
  "DateTime.subtract($x, { millis: $n })": "DateTime.subtract($x, { milliseconds: $n })",
  "Effect.forkAll($effects)":
    "Effect.forkChild(Effect.all($effects, { concurrency: \"unbounded\" }))",
  "Effect.repeatN($effect, $n)": "Effect.repeat($effect, { times: $n })",
  "Effect.tagMetrics($$effect, $key, $value)":
    "Effect.updateService($$effect, Metric.CurrentMetricAttributes, (all) => ({ ...all, [$key]: $value }))",
  "Effect.withConfigProvider($provider)":
    "Effect.provideService(ConfigProvider.ConfigProvider, $provider)",
  "Effect.withRandom(Random.make($seed))": "Random.withSeed($seed)",
  "Effect.withRandom($$effect, $random)":
    "Effect.provideService($$effect, Random.Random, $random)",
  "Effect.yieldNow()": "Effect.yieldNow",
  "Layer.scopedContext(Effect.tagMetrics(Layer.build($layer), $key, $value))":
    "Layer.provide($layer, Layer.succeed(Metric.CurrentMetricAttributes, { [$key]: $value }))",
  "Layer.toRuntime($layer)": "Layer.build($layer)",
  "Object.assign(Clock.make(), $other)":
    "Object.assign(Object.create(Clock.Clock.defaultValue()) as Clock.Clock, $other)",
  "Tracer.make({ span: $span, context: $context })": "Tracer.make({ span: $span })",
  "new Error.BadArgument($options)": "PlatformError.badArgument($options)",
  "new Error.SystemError({ reason: $reason, ...$rest })":
    "PlatformError.systemError({ _tag: $reason, $rest })",
  "Fiber.interruptFork($fiber)": "Effect.sync(() => $fiber.interruptUnsafe())",
  "Fiber.poll($fiber)": "Effect.sync(() => Option.fromNullishOr($fiber.pollUnsafe()))",
  "ExecutionStrategy.sequential": "\"sequential\"",
  "FiberRef.get($ref)": "$ref",
  "Layer.discard($layer)": "$layer",
  "Layer.setConfigProvider($provider)": "ConfigProvider.layer($provider)",
  "Layer.setTracer($tracer)": "Layer.succeed(Tracer.Tracer, $tracer)",
  "LogLevel.All": "\"All\"",
  "LogLevel.Debug": "\"Debug\"",
  "LogLevel.None": "\"None\"",
  "Logger.json": "Logger.layer([Logger.consoleJson])",
  "Logger.make($f)": ({ f: [f] }) =>
    f.parameters?.[0] !== undefined && ts.isObjectBindingPattern(f.parameters[0].name)
      ? "Logger.make((line) => ($f)({\n...line,\nlogLevel: { label: line.logLevel.toUpperCase() },\n" +
        "annotations: HashMap.fromIterable(Object.entries(line.fiber.getRef(References.CurrentLogAnnotations))),\n" +
        "spans: line.fiber.getRef(References.CurrentLogSpans).map(([label]) => ({ label }))\n}))"
      : undefined,
  "Logger.prettyLogger({ mode: \"browser\", colors: false })":
    "Logger.consolePrettyBrowser({ colors: false })",
  "Logger.prettyLogger({ mode: \"tty\", colors: false })":
    "Logger.consolePrettyTty({ colors: false })",
  "Layer.mergeAll(Logger.remove(Logger.defaultLogger), ...$loggers.map((logger) => Logger.add(logger)))":
    "Logger.layer([...$loggers], { mergeWithExisting: true })",
  "Logger.minimumLogLevel($level)": "Layer.succeed(References.MinimumLogLevel, $level)",
  "Logger.remove(Logger.defaultLogger)": "Logger.layer([])",
  "Logger.replace(Logger.defaultLogger, $logger)": "Logger.layer([$logger])",
  "Logger.withMinimumLogLevel($level)":
    "Effect.provideService(References.MinimumLogLevel, $level)",
  "Random.fixed($values)":
    "((values: Array<number>) => {\nconst next = () => {\nconst value = values.shift() ?? 0\n" +
    "values.push(value)\nreturn value\n}\nreturn { nextIntUnsafe: next, nextDoubleUnsafe: next }\n})($values)",
  "Schedule.addDelayEffect(($error) => $delay)":
    "Schedule.addDelay(({ output: $error }) => $delay)",
  "Schedule.whileInput($predicate)": "Schedule.while(({ input }) => $predicate(input))",
  "Schedule.upTo($duration)": "Schedule.upTo({ duration: $duration })",
  "it.scoped": "it.effect",
  "it.scopedLive": "it.live",
  // It has no client for Effect 4.1.
  "MysqlClient.layer($options)": "PgClient.layer($options)",
  "new SqlError.SqlError({ cause: $cause })":
    "new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: $cause }) })",
  "new HttpClientError.RequestError({ request: $r, reason: $reason, ...$rest })": httpError,
  "new HttpClientError.ResponseError({ request: $r, response: $response, reason: $reason, ...$rest })":
    httpError
}

/** Tests that cannot run on Effect 4, by their title, and why. */
export const omitted = {
  "one with options from the configuration uses the store":
    "Effect 4 reads the environment once per process, so that a test cannot change it later",
  "PromiseStoreAuth reads the assertion file too, and keeps the other options of the endpoint":
    "Effect 4 reads the environment once per process, so that a test cannot change it later",
  "that is the same for getToken and fetch if a variable is missing":
    "Effect 4 reads the environment once per process, so that a test cannot change it later",
  "a caller acquires another token if its token expires before the caller resumes":
    "Deferred.done of Effect 4 wakes the waiters within the call: there is no time between",
  "limitation of the security model: a given client that follows redirects sends the token with them":
    "followRedirects of Effect 4 drops Authorization on the way to another origin",
  "a database that fails for three of nine lifetimes":
    "the client for PostgreSQL takes its time limits from the clock that the test advances",
  "an endpoint repeats its token: six processes send at most three requests more than one":
    "as above",
  "the token is visible in a response of an API that repeats it":
    "a response of Effect 4 does not print its body"
}

/**
 * Members that both majors have with different meanings, which the compiler does not report. No source of the library
 * and no overlay may use them, and no rule may produce them. A source for Effect 3 may use one that has a new name.
 */
export const forbidden = {
  "Array.partition": "Effect 4 returns the passing elements first",
  "Clock.currentTimeNanos": "in Effect 4 it is the wall clock",
  "Config.all": "Effect 4 names only the first missing variable. Use internal/configOf",
  "Duration.subtract": "Effect 4 returns a negative duration instead of zero",
  "Effect.contextWith": "Effect 4 expects an effect",
  "Effect.disconnect": "Effect 4 does not have it. Use internal/waitAtMost",
  "HttpBody.text": "Effect 4 keeps the text and prints it. Use HttpBody.uint8Array",
  "HttpClientRequest.prependUrl":
    "Effect 4 puts a slash before a query. Use HttpClientRequest.setUrl",
  "Schema.Date": "Effect 4 does not decode it from a string"
}

/** Files that may use one, and why. */
export const allowed = {
  "core/src/internal/configOf.ts: Config.all": "it combines options, of which none is missing",
  "platform-node/src/NodeStoreAuth.ts: Config.all":
    "the error shown is that of StoreAuth.config"
}

/** Words in comments, and code that no pattern can say. */
export const texts = [
  [
    "const decoded = yield* decodedResponse",
    "const decoded = yield* Effect.fromResult(decodedResponse)"
  ],
  // `fetch` of Node 24 takes no dispatcher of undici 8, unless it is wrapped.
  [
    "(dispatcher: Undici.Dispatcher): Undici.Dispatcher => dispatcher\n",
    "(dispatcher: Undici.Dispatcher): Undici.Dispatcher =>\n  new Undici.Dispatcher1Wrapper(dispatcher)\n"
  ],
  [
    "fetch(input, { ...init, dispatcher } as RequestInit)",
    "Undici.fetch(input as string, { ...init, dispatcher } as Undici.RequestInit) as unknown as Promise<Response>"
  ],
  ["import { MysqlClient } from \"@effect/sql-mysql2\"\n", ""],
  ["[\"pg\", \"mysql\", \"sqlite\"]", "[\"pg\", \"sqlite\"]"],
  ["\"ParseError\"", "\"SchemaError\""],
  ["Effect's `ParseError`", "an `Error` with a `SchemaIssue` as its `cause`"],
  ["the reason is `InvalidUrl`", "the reason is `InvalidUrlError`"],
  [
    "`Transport` if that is transient, and `Encode`",
    "`TransportError` if that is transient, and `EncodeError`"
  ],
  ["`JSON.stringify` and, on Effect 4, `console.log`", "`JSON.stringify` and `console.log`"],
  ["`@effect/platform`", "`effect/http`"],
  ["`@effect/sql`", "`effect/sql`"],
  ["`Effect.tagMetrics`", "`Metric.CurrentMetricAttributes`"],
  ["\"RequestError\"", "\"HttpClientError\""]
]
