import type { Bus, Facts, SpendReader } from '../ports.ts';
import { BusFacts } from './bus-facts.ts';
import { BusLink, type LinkDeps, type NatsOptions } from './link.ts';
import { NatsBus } from './nats-bus.ts';
import { ledgerSpend } from './spend-reader.ts';

/** The NATS adapters of the operator. Disposing closes the connection. */
export interface BusParts extends AsyncDisposable {
  readonly bus: Bus;
  readonly facts: Facts;
  readonly spend: SpendReader;
}

/** Starts to connect in the background and returns at once. */
export function openBus(options: NatsOptions, deps: Pick<LinkDeps, 'clock' | 'log' | 'metrics'>): BusParts {
  const link = new BusLink(options, deps);
  return {
    bus: new NatsBus({ ...deps, link }),
    facts: new BusFacts({ ...deps, link }),
    spend: ledgerSpend(link, deps.clock),
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  };
}
