import type { ChangeListener } from '../../kube/informer/reflector.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import type { WorkQueue } from '../../kube/controller/work-queue.ts';
import { PRIORITY } from '../../kube/controller/priority-fifo.ts';
import type { ObservedKind } from '../../events/platform/observed-object.ts';
import type { Informers } from '../kube/informers.ts';
import { goneKey } from './reconcile.ts';

interface PlatformEventRouteDeps {
  readonly informers: Pick<Informers, 'agents' | 'tools' | 'requests'>;
  readonly queue: WorkQueue;
  readonly isLeader: () => boolean;
}

/** Looks at each object that changed. Only a leader notes what is gone: the next one finds it by its record. */
export function routePlatformEvents({ informers, queue, isLeader }: PlatformEventRouteDeps): void {
  const gone = (uid: string | undefined): void => {
    if (uid !== undefined && isLeader()) queue.add(goneKey(uid));
  };
  const listener =
    (kind: ObservedKind): ChangeListener<KubeObject> =>
    (change, source) => {
      const { uid, namespace, name } = change.object.metadata;
      if (change.type === 'deleted') return gone(uid);
      if (change.type === 'updated' && change.before.metadata.uid !== uid) gone(change.before.metadata.uid);
      queue.add(`${kind}/${namespace}/${name}`, source === 'change' ? PRIORITY.normal : PRIORITY.resync);
    };
  informers.agents.subscribe(listener('Agent'));
  informers.tools.subscribe(listener('EmergentTool'));
  informers.requests.subscribe(listener('ApprovalRequest'));
}
