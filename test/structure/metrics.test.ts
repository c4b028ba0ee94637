import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { METRICS } from '../../src/kube/metrics.ts';
import { EGRESS_METRICS, GATEWAY_METRICS, OPERATOR_METRICS } from '../../src/telemetry/temper-metrics.ts';
import { modulesOf, stringsOf } from './source/source-strings.ts';

/** The modules that record the metrics of a table; the tables themselves are elsewhere. */
const RECORDERS = [
  { table: 'the gateway', names: Object.keys(GATEWAY_METRICS), modules: ['gateway', 'nats/connection'] },
  { table: 'the egress proxy', names: Object.keys(EGRESS_METRICS), modules: ['egress'] },
  { table: 'the operator', names: Object.keys(OPERATOR_METRICS), modules: ['operator', 'nats/connection'] },
  {
    table: 'the controller runtime',
    names: Object.keys(METRICS),
    modules: modulesOf('kube').filter((module) => module !== 'kube/metrics.ts'),
  },
];

describe('the documented metrics', () => {
  for (const { table, names, modules } of RECORDERS) {
    it(`every metric of ${table} is recorded by a module`, () => {
      const strings = new Set(modules.flatMap(modulesOf).flatMap((module) => [...stringsOf(module)]));
      assert.deepEqual(
        names.filter((name) => !strings.has(name)),
        [],
      );
    });
  }
});
