import { type Json, isJsonObject, member, textAt } from '../lib/json.ts';
import type { ResourceType } from './client.ts';
import type { KubeObject } from './store.ts';

export const LEASES: ResourceType = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

/** What a Lease says. Times of it are for people: they are by clocks of other machines. */
export interface LeaseRecord {
  readonly resourceVersion: string;
  /** '' when nobody holds it. */
  readonly holder: string;
  /** How long the holder may be silent until it is taken for dead, in milliseconds. */
  readonly duration: number;
  readonly transitions: number;
}

export function readLease(lease: KubeObject, ownDuration: number): LeaseRecord {
  const whole: unknown = lease;
  const spec = isJsonObject(whole) ? member(whole as Json, 'spec') : undefined;
  const seconds = numberAt(spec, 'leaseDurationSeconds');
  return {
    resourceVersion: lease.metadata.resourceVersion ?? '',
    holder: textAt(spec, ['holderIdentity']),
    duration: seconds > 0 ? seconds * 1_000 : ownDuration,
    transitions: numberAt(spec, 'leaseTransitions'),
  };
}

/** The spec of a Lease just taken, just renewed or given back. */
export const leaseSpec = {
  taken: (holder: string, duration: number, now: Date, transitions: number): object => ({
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

/** RFC 3339 with six digits behind the second, which this type of the API insists on. */
function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}

function numberAt(value: Json | undefined, key: string): number {
  const found = member(value, key);
  return typeof found === 'number' && Number.isFinite(found) ? found : 0;
}
