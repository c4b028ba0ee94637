import { LABELS } from '../../api/cluster.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import { isDeactivated } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { KubeObject } from '../../kube/informer/store.ts';

/** Keeps of an Agent what a gateway reads. Any user of a namespace may store 256 KiB of annotations on each, and every gateway holds every Agent. */
export function pruneAgent({ apiVersion, kind, metadata, spec, status }: Agent): Agent {
  const { pod, level, trust, deactivatedTools, toolsUsedTogether } = status ?? {};
  return {
    apiVersion,
    kind,
    metadata: pruneMetadata(metadata),
    spec,
    status: {
      ...(pod === undefined ? {} : { pod }),
      ...(level === undefined ? {} : { level }),
      ...(trust === undefined ? {} : { trust }),
      ...(deactivatedTools === undefined ? {} : { deactivatedTools: deactivatedTools.filter(isDeactivated) }),
      ...(toolsUsedTogether === undefined ? {} : { toolsUsedTogether }),
    },
  };
}

/** Of the status only the spend: an account whose record is lost with the store of NATS starts with it. */
export function prunePolicy({ apiVersion, kind, metadata, spec, status }: TrustPolicy): TrustPolicy {
  const spend = status?.spend;
  return {
    apiVersion,
    kind,
    metadata: pruneMetadata(metadata),
    spec,
    ...(spend === undefined ? {} : { status: { spend } }),
  };
}

function pruneMetadata(metadata: Agent['metadata']): Agent['metadata'] {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, labels } = metadata;
  const kept = [LABELS.parentAgent, LABELS.specialist].flatMap((label) => {
    const value = labels?.[label];
    return value === undefined ? [] : [[label, value] as const];
  });
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(generation === undefined ? {} : { generation }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    ...(kept.length === 0 ? {} : { labels: Object.fromEntries(kept) }),
  };
}

/** Do both versions of one object have the same spec? The API server increments the generation with each change of the spec. */
export function hasSameSpec({ metadata: one }: KubeObject, { metadata: other }: KubeObject): boolean {
  return one.generation !== undefined && one.generation === other.generation && one.uid === other.uid;
}
