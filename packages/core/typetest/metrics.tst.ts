/** The types of the metrics, which determine the types of their states. */
import { AccessTokenMetrics } from "@store-api/core"
import { type Effect, Metric, type MetricState } from "effect"
import { expect, test } from "tstyche"

test("AccessTokenMetrics", () => {
  expect(AccessTokenMetrics.acquisitions).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.acquisitionDuration).type.toBe<Metric.Metric.Histogram<number>>()
  expect(AccessTokenMetrics.callersJoined).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.rejections).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.cooldowns).type.toBe<Metric.Metric.Counter<number>>()
  expect(AccessTokenMetrics.expiry).type.toBe<Metric.Metric.Gauge<number>>()
  expect(Metric.value(AccessTokenMetrics.expiry)).type.toBe<Effect.Effect<MetricState.MetricState.Gauge<number>>>()
})
