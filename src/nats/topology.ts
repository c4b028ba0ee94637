import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

export interface TopologyOptions {
  /** 1, or 3 on three servers. */
  replicas?: number;
}

export interface TopologyReport {
  created: string[];
  updated: string[];
  /** What differs and cannot be changed in place, in words. */
  drift: string[];
}

/** Creates or updates every stream and bucket. Nothing is ever deleted. */
export async function reconcileTopology(
  _connection: BusConnection,
  _options: TopologyOptions = {},
): Promise<TopologyReport> {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
