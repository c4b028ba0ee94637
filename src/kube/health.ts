import type { Registry } from 'prom-client';
import { TemperError } from '../lib/errors.ts';

export interface HealthOptions {
  host: string;
  /** 0 for any free one. */
  port: number;
  registry: Pick<Registry, 'metrics' | 'contentType'>;
  /** What is not ready yet, by name; empty when all is. */
  waitingFor: () => readonly string[];
}

export interface HealthServer extends AsyncDisposable {
  readonly port: number;
}

/** Serves `/healthz` (the event loop runs), `/readyz` and `/metrics` over HTTP. */
export function startHealthServer(_options: HealthOptions): Promise<HealthServer> {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
