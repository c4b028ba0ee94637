import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { GROUP } from '../../api/names.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { PlainObject, Pod, StoredAgent, StoredPolicy } from './types.ts';

/**
 * Keeps of an Agent what a reconcile reads. A prompt may have 64 KiB and annotations 256 KiB, written by any user of a namespace, while the
 * operator holds every Agent of the cluster: the prompt is replaced by its digest, which the rules of the kind accept as a prompt.
 */
export function pruneAgent({ apiVersion, kind, metadata, spec, status }: StoredAgent): StoredAgent {
  const { description: _description, ...kept } = spec;
  // Optional here: an object that was stored under an earlier CRD must not stop the informer.
  const system = spec.prompt?.system;
  return {
    apiVersion,
    kind,
    metadata: { ...pruneMetadata(metadata), ...childMetadata(metadata) },
    spec: typeof system === 'string' ? { ...kept, prompt: { system: digestOf(system) } } : kept,
    ...(status === undefined ? {} : { status }),
  };
}

export function prunePolicy({ metadata, ...rest }: StoredPolicy): StoredPolicy {
  return { ...rest, metadata: pruneMetadata(metadata) };
}

/** RFC 3339; users write annotations too. */
const MAX_TIME_CHARACTERS = 40;

/** What the operator reads of an Agent that another one started: which one, and when it ends. */
function childMetadata({
  labels,
  annotations,
}: StoredAgent['metadata']): Pick<StoredAgent['metadata'], 'labels' | 'annotations'> {
  const parent = labels?.[LABELS.parentAgent];
  if (parent === undefined) return {};
  const endsAt = labels?.[LABELS.specialist] === undefined ? undefined : annotations?.[ANNOTATIONS.endsAt];
  const isTime = endsAt !== undefined && endsAt.length <= MAX_TIME_CHARACTERS;
  const end = isTime ? { annotations: { [ANNOTATIONS.endsAt]: endsAt } } : {};
  return { labels: { [LABELS.parentAgent]: parent }, ...end };
}

/** Without labels and annotations, which the operator does not read on objects of users. */
function pruneMetadata(metadata: StoredAgent['metadata']): StoredAgent['metadata'] {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const kept = { name, namespace, uid, resourceVersion, generation, creationTimestamp };
  return deletionTimestamp === undefined ? kept : { ...kept, deletionTimestamp };
}

/** Only the labels or annotations of this project; webhooks add their own. */
function ownMembers(members: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(members).filter(([name]) => name.startsWith(`${GROUP}/`)));
}

/** Keeps only the fields that a reconcile reads, because thousands of full pods would use too much memory. */
export function prunePod({ metadata, spec, status }: Pod): Pod {
  const { conditions = [], containerStatuses, phase, reason, message } = status ?? {};
  const { labels, annotations, managedFields: _dropped, ...rest } = metadata;
  return {
    metadata: {
      ...rest,
      ...(labels === undefined ? {} : { labels: ownMembers(labels) }),
      ...(annotations === undefined ? {} : { annotations: ownMembers(annotations) }),
    },
    spec: spec?.nodeName === undefined ? {} : { nodeName: spec.nodeName },
    status: {
      ...(phase === undefined ? {} : { phase }),
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      conditions: conditions.filter(({ type }) => type === 'Ready' || type === 'PodScheduled'),
      ...(containerStatuses === undefined ? {} : { containerStatuses: containerStatuses.map(pruneContainer) }),
    },
  };
}

type Containers = NonNullable<NonNullable<Pod['status']>['containerStatuses']>;

function pruneContainer({ name, ready, restartCount, state, lastState }: Containers[number]): Containers[number] {
  return {
    name,
    ...(ready === undefined ? {} : { ready }),
    ...(restartCount === undefined ? {} : { restartCount }),
    ...(state === undefined ? {} : { state }),
    ...(lastState === undefined ? {} : { lastState }),
  };
}

/** Without the status, which a ResourceQuota changes with every pod, and without annotations: the operator reads neither. */
export function pruneChild({ metadata, status: _status, ...rest }: PlainObject): PlainObject {
  const { annotations: _annotations, ...kept } = metadata;
  return { ...rest, metadata: kept };
}
