import { systemClock } from '../../lib/clock.ts';
import type { Amounts, Ledger } from '../../ledger/port.ts';
import { metering } from '../metering.ts';
import { openModels } from '../named-models.ts';
import { calledBy, compose } from '../pipeline.ts';
import type { ModelRequest } from '../port.ts';
import type { ProviderType } from '../providers.ts';

/** A ledger that grants everything. `next` resolves with the next commit. */
class ScriptedLedger implements Ledger {
  readonly reserved: Amounts[] = [];
  readonly commits: Amounts[] = [];
  readonly #waiting: ((used: Amounts) => void)[] = [];

  async reserve(maximum: Amounts) {
    this.reserved.push(maximum);
    return { granted: true, id: String(this.reserved.length) } as const;
  }

  async commit(_id: string, used: Amounts): Promise<void> {
    this.commits.push(used);
    this.#waiting.shift()?.(used);
  }

  next(): Promise<Amounts> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  usage(): Promise<never> {
    return Promise.reject(new Error('not used'));
  }
}

/** A metered pipeline for a server at `url`, with the official SDK of the type, and its ledger. */
export function metered(
  type: ProviderType,
  url: string,
  clock = systemClock,
  limits = { maxUnreadMs: 30_000 },
  closing = new AbortController().signal,
) {
  const ledger = new ScriptedLedger();
  const baseUrl = type === 'anthropic' ? url : `${url}/v1`;
  const provider = { name: 'p', type, baseUrl, ...(type === 'anthropic' ? {} : { embeddingModel: 'e' }) };
  const config = { providers: [provider], aliases: {} };
  const { pipeline, resolve, embedding } = openModels(config, {
    clock,
    random: () => 0,
    environment: {},
    limits,
    closing,
  });
  let serial = 0;
  const ids = { next: () => `id-${(serial += 1)}` };
  const model = compose(pipeline, [metering({ ids, embedding }), calledBy({ id: 'agent', ledger })]);
  const stream = (request: ModelRequest, signal = new AbortController().signal) =>
    model.stream({ ...request, model: resolve('p/m') }, { signal, deadline: Infinity, key: 'k' });
  return { ledger, model, stream };
}
