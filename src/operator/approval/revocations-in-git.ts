import type { PullRequestState } from '../../nats/pull-requests.ts';

/** The revocations in Git, as gateways last saw them. A leader task updates them; the controller of Approvals reads them. */
export class RevocationsInGit {
  #states: ReadonlyMap<string, readonly PullRequestState[]> | undefined;

  /** Undefined: not known yet. */
  of(approvalUid: string): readonly PullRequestState[] | undefined {
    return this.#states === undefined ? undefined : (this.#states.get(approvalUid) ?? []);
  }

  /** Returns the keys of the Approvals whose states are new, as `namespace/name`. */
  update(all: readonly PullRequestState[]): string[] {
    const states = all.filter(({ kind }) => kind === 'Revocation');
    const before = this.#states;
    const after = Map.groupBy(states, ({ requestUid }) => requestUid);
    this.#states = after;
    const gone = [...(before ?? new Map<string, readonly PullRequestState[]>())].filter(([uid]) => !after.has(uid));
    const changed = [...after].filter(([uid, found]) => fingerprint(found) !== fingerprint(before?.get(uid)));
    return [...changed, ...gone].flatMap(([, [state]]) => keyOf(state));
  }
}

function keyOf(state: PullRequestState | undefined): string[] {
  return state === undefined ? [] : [`${state.namespace}/${state.request}`];
}

function fingerprint(states: readonly PullRequestState[] | undefined): string {
  return JSON.stringify((states ?? []).map(({ place, state, url, message }) => [place, state, url, message]));
}
