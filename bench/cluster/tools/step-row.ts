import { loadavg } from 'node:os';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { writesOf } from '../../../test/support/operator/start-operator.ts';
import { quantile } from '../../baseline/baseline.ts';
import { atMost, milliseconds, plain, type Row } from '../row.ts';

/** The time of one step of a tool's life. Times depend on the machine, so they are goals, beside its load. */
export function stepRow(what: string, times: readonly number[], share: 0.5 | 0.99, limit: number): Row {
  const [p50, p99] = [0.5, 0.99].map((each) => milliseconds(quantile(times, each)));
  const [load = 0] = loadavg();
  const note = `p50 ${p50}, p99 ${p99}; ${times.length} one after the other; load average ${load.toFixed(0)}`;
  return atMost('goal', `${what}, p${share * 100}`, quantile(times, share), limit, milliseconds, { note });
}

/** What the operator writes at the same time about agents and policies, whatever the tool does. */
const UNRELATED = /(?:agents|trustpolicies)\/status$/;

/** The writes of the operator per step, without Events. They are the same on every machine. */
export function writesRow(what: string, sent: readonly KubeRequest[], steps: number, limit: number): Row {
  const writes = writesOf(sent).filter((write) => !UNRELATED.test(write));
  const each = [...new Set(writes)].map((kind) => {
    const count = writes.filter((write) => write === kind).length;
    return `${plain(count / steps)} × ${kind}`;
  });
  return atMost('requirement', what, writes.length / steps, limit, plain, { note: each.join(', ') });
}
