import { digestOf } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import type { KubeObject } from '../kube/store.ts';

/** The statuses this process wrote last, so that one somebody else wrote is noticed: nobody may, and what it says does not hold. */
export class OwnStatuses {
  /** By uid. The one before is kept too: news of it may come after the next one was sent. */
  readonly #known = new Map<string, { readonly last: string; readonly before: string | undefined }>();

  /** Before it is written, so that the news of it cannot come first; and of what was read and found right. */
  expect(uid: string, status: object | undefined): void {
    const last = digestOfStatus(status);
    const known = this.#known.get(uid);
    if (known?.last !== last) this.#known.set(uid, { last, before: known?.last });
  }

  /** False for what this process never looked at. */
  isForeign({ metadata, status }: KubeObject & { readonly status?: object }): boolean {
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
  return digestOf(JSON.parse(JSON.stringify(status ?? {})) as Json);
}
