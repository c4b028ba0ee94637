import { systemClock } from '../../../src/lib/clock.ts';
import { NatsServerReloads } from '../../../src/operator/pki/nats-reload.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';

/** The reload task of an operator, with its gauges by `name server` and its log. */
export interface Reloads {
  tasks: NatsServerReloads;
  gauges: Record<string, number>;
  lines: string[];
}

export function newReloads(): Reloads {
  const lines: string[] = [];
  const values: Record<string, number> = {};
  const log = createLogger({
    level: 'debug',
    destination: { write: (line: string) => void lines.push(line) },
    secrets: createSecretRedactor(),
  });
  const gauge = (name: string, { server = '' }: { server?: string }, value: number) => {
    values[`${name} ${server}`] = value;
  };
  const metrics = { gauge } as ConstructorParameters<typeof NatsServerReloads>[0]['metrics'];
  return { tasks: new NatsServerReloads({ clock: systemClock, log, metrics }), gauges: values, lines };
}

/** The gauges of three servers. */
export function gauges({ up, current }: { up: number[]; current: number[] }): Record<string, number> {
  const entries = (name: string, values: number[]) =>
    values.map((value, index) => [`temper_nats_server_${name} temper-nats-${index}`, value] as const);
  return Object.fromEntries([...entries('up', up), ...entries('current', current)]);
}
