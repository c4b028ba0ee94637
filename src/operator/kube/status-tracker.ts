import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { KubeObject } from '../../kube/informer/store.ts';

/**
 * The statuses that this process wrote last, to detect a status from another writer. The operator is the only authorized writer, so
 * such a status is wrong and has to be overwritten.
 */
export class StatusTracker {
  /** By UID. Includes the previous status, whose watch event may arrive after the next status was sent. */
  readonly #known = new Map<string, { readonly last: string; readonly before: string | undefined }>();

  /** Call before writing a status, so that its watch event cannot arrive first, and for a status that was read and needs no write. */
  expect(uid: string, status: object | undefined): void {
    const last = digestOfStatus(status);
    const known = this.#known.get(uid);
    if (known?.last !== last) this.#known.set(uid, { last, before: known?.last });
  }

  /** False for an object that this process has not reconciled yet. */
  isExternalWrite({ metadata, status }: KubeObject & { readonly status?: object }): boolean {
    const known = this.#known.get(metadata.uid ?? '');
    if (known === undefined) return false;
    const digest = digestOfStatus(status);
    return digest !== known.last && digest !== known.before;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
  }
}

function digestOfStatus(status: object | undefined): string {
  return digestOf((status ?? {}) as Json);
}
