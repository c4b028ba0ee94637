import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { API_VERSION } from '../../api/names.ts';
import type { Agent, AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { ChildRequestRecord } from '../../nats/children/child-requests.ts';

/** An agent that another agent started. Its parent owns it, so the API server deletes it with its parent. */
export function childObject({ id, name, parent, order }: ChildRequestRecord, spec: AgentSpec): object {
  const endsAt = order !== undefined && 'endsAt' in order ? order.endsAt : undefined;
  return {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata: {
      name,
      namespace: parent.namespace,
      labels: { [LABELS.parentAgent]: parent.uid, ...(endsAt === undefined ? {} : { [LABELS.specialist]: 'true' }) },
      annotations: {
        [ANNOTATIONS.childRequest]: id,
        ...(endsAt === undefined ? {} : { [ANNOTATIONS.endsAt]: endsAt }),
      },
      ownerReferences: [{ apiVersion: API_VERSION, kind: 'Agent', name: parent.name, uid: parent.uid }],
    },
    spec,
  };
}

/** A child as the API server returns it. */
export type StoredChild = KubeObject & Pick<Agent, 'spec'>;

export function parentUidOf({ metadata }: KubeObject): string | undefined {
  return metadata.labels?.[LABELS.parentAgent];
}

/** The object of this request, and not one that has its name by chance or by intent. */
export function isOfRequest(object: KubeObject, { id, parent }: ChildRequestRecord): boolean {
  return parentUidOf(object) === parent.uid && object.metadata.annotations?.[ANNOTATIONS.childRequest] === id;
}

/** 0 for an agent without a parent. Bounded: users write labels too. */
export function generationOf(parent: KubeObject, children: readonly KubeObject[]): number {
  const byUid = new Map(children.map((child) => [child.metadata.uid, child]));
  let generation = 0;
  let uid = parentUidOf(parent);
  while (uid !== undefined && generation < MAX_GENERATIONS) {
    generation += 1;
    const next = byUid.get(uid);
    uid = next === undefined ? undefined : parentUidOf(next);
  }
  return generation;
}

const MAX_GENERATIONS = 8;
