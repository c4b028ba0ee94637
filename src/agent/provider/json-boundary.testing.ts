import assert from 'node:assert/strict';
import type { AgentProvider, ProviderHost } from './port.ts';

/** The provider behind a boundary that only JSON passes, as that of another process. */
export function overJson(provider: AgentProvider): AgentProvider {
  return {
    async run(task, host, op) {
      return copied(await provider.run(copied(task), hostOverJson(host), op));
    },
  };
}

function hostOverJson(host: ProviderHost): ProviderHost {
  return {
    offer: async () => copied(await host.offer()),
    history: async () => copied(await host.history()),
    append: (items, deferrable) => host.append(copied(items), deferrable),
    invoke: async (calls) => copied(await host.invoke(copied(calls))),
    hook: async (event) => copied(await host.hook(copied(event))),
    report: (report) => host.report(copied(report)),
  };
}

/** The value after a trip as JSON text. Fails for what JSON does not have. */
function copied<T>(value: T): T {
  if (value === undefined) return value;
  const copy = JSON.parse(JSON.stringify(value)) as T;
  // Strict, so that a function, a Date or an instance of a class is a difference.
  assert.deepStrictEqual(copy, withoutUndefined(value), 'only JSON crosses the boundary of a provider');
  return copy;
}

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const present = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(present.map(([key, member]) => [key, withoutUndefined(member)]));
}
