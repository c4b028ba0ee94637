import type { PullRequestState } from '../../nats/pull-requests.ts';

/** What gateways last saw in Git of requests, or of revocations. A leader task updates it; the controller of the objects reads it. */
export class GitStates {
  readonly #kind: PullRequestState['kind'];
  #states: ReadonlyMap<string, readonly PullRequestState[]> | undefined;

  constructor(kind: PullRequestState['kind']) {
    this.#kind = kind;
  }

  /** By the UID of the object. Undefined: not known yet. */
  of(uid: string): readonly PullRequestState[] | undefined {
    return this.#states === undefined ? undefined : (this.#states.get(uid) ?? []);
  }

  /** Returns the keys of the objects whose states are new, as `namespace/name`. */
  update(all: readonly PullRequestState[]): string[] {
    const states = all.filter(({ kind }) => kind === this.#kind);
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
  return JSON.stringify(
    (states ?? []).map(({ place, state, url, message, retryAt }) => [place, state, url, message, retryAt]),
  );
}
