import { API_VERSION } from '../../../api/names.ts';
import type { EventNote, EventSubject } from '../../../kube/events/event-note.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import type { PullRequestState } from '../../../nats/pull-requests.ts';

/** Reports each change of a pull request as an Event of its ApprovalRequest. A new leader repeats the last one. */
export class PullRequestEvents {
  readonly #events: EventRecorder;
  #reported: ReadonlyMap<string, string> = new Map();

  constructor(events: EventRecorder) {
    this.#events = events;
  }

  report(all: readonly PullRequestState[]): void {
    const states = all.filter(({ kind }) => kind === 'Request');
    for (const state of states) {
      if (this.#reported.get(state.requestUid) !== fingerprint(state)) {
        const note = pullRequestNote(state);
        if (note !== undefined) this.#events.record(subjectOf(state), note);
      }
    }
    this.#reported = new Map(states.map((state) => [state.requestUid, fingerprint(state)]));
  }
}

function pullRequestNote({ state, number, url = '', message = '' }: PullRequestState): EventNote | undefined {
  switch (state) {
    case 'Open':
      return {
        type: 'Normal',
        reason: 'PullRequestOpened',
        message: `${url} waits for a merge, which approves the tool`,
      };
    case 'Merged':
      return {
        type: 'Normal',
        reason: 'PullRequestMerged',
        message: `${url} is merged; the tool is shared when its files are applied to the cluster`,
      };
    case 'Closed':
      return {
        type: 'Warning',
        reason: 'PullRequestClosed',
        message:
          number === undefined
            ? `${url} was deleted without a merge; deny the request, or push the branch again`
            : `${url} was closed without a merge; deny the request, or reopen the pull request`,
      };
    case 'Failed':
      return {
        type: 'Warning',
        reason: 'PullRequestFailed',
        message: `the pull request could not be opened or read: ${message}; the gateway tries again`,
      };
    case 'Absent':
      return undefined;
  }
}

function fingerprint({ state, url, message }: PullRequestState): string {
  return JSON.stringify([state, url, message]);
}

function subjectOf({ request: name, requestUid: uid, namespace }: PullRequestState): EventSubject {
  return { apiVersion: API_VERSION, kind: 'ApprovalRequest', metadata: { name, namespace, uid } };
}
