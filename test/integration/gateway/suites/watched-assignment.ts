import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Assignment,
  ASSIGNMENT_VERSION_HEADER,
  type NoMessage,
  type PodDelivery,
} from '../../../../src/gateway-api/pod-api.ts';
import { type MessageClient, NEXT, parsed } from '../../../support/gateway/message-client.ts';
import { pollValue } from '../../../support/poll.ts';

/** Requests for the next message that watch the assignment of the pod. */
export function watchedAssignmentTests(open: () => MessageClient): void {
  describe('a request for the next message that names the version of an assignment', () => {
    const agent = 'reassigned';
    const setSpec = (spec: object) => open().fixture.patchAgent('team-a', agent, { spec });

    /** The agent's pod as a client of one replica. */
    const openPod = async () => {
      const { token } = await open().createReadyAgent(agent);
      const { one } = open();
      return {
        assignment: async () => parsed(await one.call('GET', '/v1/assignment', { token })) as Assignment,
        poll: async (version: string, waitSeconds = 60) => {
          const headers = { [ASSIGNMENT_VERSION_HEADER]: version };
          return parsed(await one.call('POST', NEXT, { token, body: { waitSeconds }, headers }));
        },
      };
    };

    it('such a request ends with another assignment, with a message, or empty when its wait is over', async () => {
      const { assignment, poll } = await openPod();
      const { version } = await assignment();
      assert.deepEqual(await poll(version, 0), {});
      const older = (await poll('an older one')) as NoMessage;
      assert.equal(older.assignment?.version, version);
      const changed = poll(version) as Promise<NoMessage>;
      await setSpec({ prompt: { system: 'Another prompt.' } });
      const next = (await changed).assignment;
      assert.equal(next?.agent.spec.prompt.system, 'Another prompt.');
      assert.deepEqual(next, await assignment());
      const suspended = poll(next.version) as Promise<NoMessage>;
      await setSpec({ suspend: true });
      assert.equal((await suspended).assignment?.suspended, true);
      await setSpec({ suspend: false });
      await pollValue('the resumed agent', assignment, ({ suspended: isSuspended }) => !isSuspended);
      const waiting = poll((await assignment()).version) as Promise<PodDelivery>;
      parsed(await open().sendMessage(agent, 'hello'));
      assert.equal((await waiting).message.text, 'hello');
    });
  });
}
