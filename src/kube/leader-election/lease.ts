import { resourceType } from '../client/resource-path.ts';
import { type Json, isJsonObject, member, textAt } from '../../lib/json.ts';
import type { KubeObject } from '../informer/store.ts';

export const LEASES = resourceType('coordination.k8s.io/v1', 'leases', 'Lease');

/** The content of a Lease, without its times: they are only informative, since they come from clocks of other machines. */
export interface LeaseRecord {
  readonly resourceVersion: string;
  /** '' when the Lease has no holder. */
  readonly holder: string;
  /** In milliseconds: without a renewal for this long, candidates consider the holder dead. */
  readonly durationMs: number;
  readonly transitions: number;
}

/** `defaultDuration` (milliseconds) applies when the Lease has no valid duration. */
export function readLease(lease: KubeObject, defaultDurationMs: number): LeaseRecord {
  const object: unknown = lease;
  const spec = isJsonObject(object) ? member(object as Json, 'spec') : undefined;
  const seconds = numberAt(spec, 'leaseDurationSeconds');
  return {
    resourceVersion: lease.metadata.resourceVersion ?? '',
    holder: textAt(spec, ['holderIdentity']),
    durationMs: seconds > 0 ? seconds * 1_000 : defaultDurationMs,
    transitions: numberAt(spec, 'leaseTransitions'),
  };
}

/** The spec (or patch of the spec) that acquires, renews or releases a Lease. */
export const leaseSpec = {
  acquired: (holder: string, duration: number, now: Date, transitions: number): object => ({
    holderIdentity: holder,
    leaseDurationSeconds: Math.ceil(duration / 1_000),
    acquireTime: microTime(now),
    renewTime: microTime(now),
    leaseTransitions: transitions,
  }),
  renewed: (now: Date): object => ({ renewTime: microTime(now) }),
  released: (now: Date): object => ({
    holderIdentity: '',
    leaseDurationSeconds: 1,
    acquireTime: microTime(now),
    renewTime: microTime(now),
  }),
};

/** `MicroTime`: RFC 3339 with exactly six fractional digits. */
function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}

function numberAt(value: Json | undefined, key: string): number {
  const number = member(value, key);
  return typeof number === 'number' && Number.isFinite(number) ? number : 0;
}
