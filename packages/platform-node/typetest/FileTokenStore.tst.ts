/** The types of `FileTokenStore`, which fails only when it is used. */
import type { FileSystem, Path } from "@effect/platform"
import type { TokenStore } from "@store-api/core"
import { FileTokenStore } from "@store-api/platform-node"
import type { ConfigError, Effect, Layer } from "effect"
import { Config } from "effect"
import { expect, test } from "tstyche"

test("FileTokenStore", () => {
  expect(FileTokenStore.defaultFolder).type.toBe<Effect.Effect<string>>()
  expect(FileTokenStore.make).type.toBe<
    (options?: FileTokenStore.Options) => Effect.Effect<TokenStore.Service, never, FileSystem.FileSystem | Path.Path>
  >()
  expect(FileTokenStore.layer).type.toBe<(options?: FileTokenStore.Options) => Layer.Layer<TokenStore.TokenStore>>()
  expect(FileTokenStore.layerConfig).type.toBe<
    (config?: Config.Config.Wrap<FileTokenStore.Options>) => Layer.Layer<TokenStore.TokenStore, ConfigError.ConfigError>
  >()
})

test("FileTokenStore.Options", () => {
  const { layer, layerConfig } = FileTokenStore
  expect(layer).type.toBeCallableWith()
  expect(layer).type.toBeCallableWith({ folder: "/var/lib/shop/tokens" })
  expect(layer).type.not.toBeCallableWith({ folder: 1 })
  expect(layer).type.not.toBeCallableWith({ path: "/var/lib/shop/tokens" })
  expect(layerConfig).type.toBeCallableWith({ folder: Config.string("TOKENS") })
  expect(layerConfig).type.not.toBeCallableWith({ folder: Config.number("TOKENS") })
})
