import assert from 'node:assert/strict';
import type { Labels } from '../telemetry/metrics.ts';
import { type CounterName, type GaugeName, type HistogramName, METRICS, type Metrics } from './metrics.ts';

/** For tests: records all metrics in memory; rejects labels that are not in the table. */
export class RecordingMetrics implements Metrics {
  readonly counts: Record<string, number> = {};
  readonly gauges: Record<string, number> = {};
  readonly observed: Record<string, number[]> = {};

  count = (name: CounterName, labels: Labels, by = 1): void => {
    const key = keyOf(name, labels);
    this.counts[key] = (this.counts[key] ?? 0) + by;
  };
  gauge = (name: GaugeName, labels: Labels, value: number): void => {
    this.gauges[keyOf(name, labels)] = value;
  };
  observe = (name: HistogramName, labels: Labels, seconds: number): void => {
    (this.observed[keyOf(name, labels)] ??= []).push(seconds);
  };
  watch = (name: GaugeName, labels: Labels, read: () => number): void => {
    Object.defineProperty(this.gauges, keyOf(name, labels), { get: read, enumerable: true, configurable: true });
  };
}

function keyOf(name: keyof typeof METRICS, labels: Labels): string {
  assert.deepEqual(Object.keys(labels).sort(), [...METRICS[name].labels].sort(), `the labels of ${name}`);
  const shown = labels['result'] ?? labels['priority'] ?? labels['reason'] ?? labels['code'] ?? labels['transition'];
  return shown === undefined ? name : `${name}{${shown}}`;
}
