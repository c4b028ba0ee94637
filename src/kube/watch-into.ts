import { TemperError } from '../lib/errors.ts';
import type { Predicate } from './predicates.ts';
import type { Reflector } from './reflector.ts';
import type { KubeObject } from './store.ts';
import type { WorkQueue } from './work-queue.ts';

export interface WatchIntoOptions<T extends KubeObject> {
  /** Keys to work on when the object changes; its own when not given. */
  keys?: (object: T) => readonly string[];
  /** Changes that matter. Not asked about first lists and resyncs. */
  predicate?: Predicate<T>;
}

/** Every change of the kind becomes work. What a first list or a resync brings waits behind what changes. */
export function watchInto<T extends KubeObject>(
  _reflector: Reflector<T>,
  _queue: WorkQueue,
  _options: WatchIntoOptions<T> = {},
): void {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}

/** `keys` for children: the key of the controlling owner of that kind, in the child's own namespace. */
export function ownerKeys(_owner: { group: string; kind: string }): (object: KubeObject) => readonly string[] {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
