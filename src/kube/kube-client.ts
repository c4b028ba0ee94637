import { TemperError } from '../lib/errors.ts';
import type { KubeClient } from './client.ts';
import type { Transport } from './transport.ts';

/** `isLeader` is asked before every mutation; without it every process may write. */
export function createKubeClient(_transport: Transport, _options: { isLeader?: () => boolean } = {}): KubeClient {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
