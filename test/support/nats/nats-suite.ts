import { after, before } from 'node:test';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { type NatsFixture, type NatsFixtureOptions, startNatsFixture } from './nats-fixture.ts';

/** A nats-server for the tests of one file. The members exist while tests run. */
export interface NatsSuite {
  readonly bus: NatsFixture;
  readonly operator: JetStreamConnection;
  readonly gateway: JetStreamConnection;
}

/** Registers the hooks that start and stop the server. Call it at the top level of a test file. */
export function useNats(options: NatsFixtureOptions = {}): NatsSuite {
  let suite: NatsSuite | undefined;
  const current = (): NatsSuite => {
    if (suite === undefined) throw new Error('the members of useNats() exist only while tests run');
    return suite;
  };
  before(async () => {
    const bus = await startNatsFixture(options);
    suite = { bus, operator: await bus.connect('operator'), gateway: await bus.connect('gateway') };
  });
  after(async () => {
    await suite?.bus[Symbol.asyncDispose]();
  });
  return {
    get bus() {
      return current().bus;
    },
    get operator() {
      return current().operator;
    },
    get gateway() {
      return current().gateway;
    },
  };
}
