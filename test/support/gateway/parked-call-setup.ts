import assert from 'node:assert/strict';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { TrustPolicySpec } from '../../../src/api/v1alpha1/trustpolicy.ts';
import type { CallApproval, PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { createTransport } from '../../../src/kube/client/transport.ts';
import { textAt } from '../../../src/lib/json.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { CallRequests } from '../../../src/operator/calls/call-requests.ts';
import type { StoredAgent } from '../../../src/operator/kube/types.ts';
import { natsOperatorAudit } from '../../../src/operator/nats/audit-writer.ts';
import { natsPendingCalls } from '../../../src/operator/nats/sources/pending-call-source.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { pollValue } from '../poll.ts';
import { NO_METRICS } from '../stubs.ts';
import type { GatewayFixture, HttpResponse } from './gateway-fixture.ts';
import { KilledGateway } from './killed-gateway.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a';
const MESSAGES = '/v1/users/namespaces/team-a/agents';
const GUARDED = { rules: { requireApproval: ['code:read', 'comms:internal'] }, tools: { allow: ['*'] } };
const CALL = { tool: 'file_read', input: { path: 'note.txt', token: 'glpat-secret' }, callKey: 's-1/0/1/call-0' };

export function parsed({ text, status }: HttpResponse, expected = 200): unknown {
  assert.equal(status, expected, text);
  return text === '' ? undefined : JSON.parse(text);
}

/** An agent under a policy that escalates its calls, its pod, its user, and an operator that has just started at each round. */
export async function openParkedCalls(
  fixture: GatewayFixture,
  name: string,
  approvals: TrustPolicySpec['approvals'] = {},
) {
  await using opening = new AsyncDisposableStack();
  await fixture.createPolicy('team-a', `guarded-${name}`, { ...GUARDED, approvals });
  const spec = { trustPolicyRef: { name: `guarded-${name}` }, grants: { tools: ['*'], messages: ['*'] } };
  const { token, uid } = await fixture.createRunningAgent('team-a', name, spec);
  const userToken = await fixture.createUserToken('team-a');
  const bus = await fixture.nats.connect('operator');
  const gateway = opening.use(new KilledGateway(fixture));
  let keys = 0;
  const log = createLogger({
    level: 'error',
    destination: { write: () => undefined },
    secrets: createSecretRedactor(),
  });
  const access = await loadClusterAccess({ kind: 'file', path: fixture.plane.kubeconfig }, systemClock);
  const transport = opening.use(createTransport({ access, clock: systemClock, metrics: NO_METRICS }));
  const client = createKubeClient(transport);
  const audit = natsOperatorAudit({ current: () => bus });
  const signal = new AbortController().signal;
  const agent = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata: { namespace: 'team-a', name, uid } };
  const setup = {
    token,
    uid,
    gateway,
    /** Kills the gateway and NATS, and starts both again. */
    async killServers(): Promise<void> {
      await gateway.kill();
      await fixture.nats.server.restart();
      await gateway.replace();
    },
    post(path: string, body: object, key?: string): Promise<HttpResponse> {
      return gateway.current.call('POST', path, { token, body, ...(key === undefined ? {} : { key }) });
    },
    async send(text: string, session: string): Promise<UserMessageReceipt> {
      keys += 1;
      const sent = await gateway.current.call('POST', `${MESSAGES}/${name}/messages`, {
        userToken,
        key: `${name}-${keys}`,
        body: { text, session },
      });
      return parsed(sent) as UserMessageReceipt;
    },
    async next(): Promise<PodDelivery> {
      const answer = await setup.post('/v1/messages/next', { waitSeconds: 20 });
      return parsed(answer) as PodDelivery;
    },
    ask({ deliveryToken }: PodDelivery, change: object = {}): Promise<HttpResponse> {
      return setup.post('/v1/approvals', { deliveryToken, ...CALL, ...change });
    },
    async approval(delivery: PodDelivery, change: object = {}): Promise<CallApproval> {
      return parsed(await setup.ask(delivery, change)) as CallApproval;
    },
    use({ deliveryToken }: PodDelivery, request: string, key = 'one-attempt'): Promise<HttpResponse> {
      return setup.post('/v1/approvals/use', { deliveryToken, request }, key);
    },
    async operatorRound(): Promise<void> {
      const events = { record: () => undefined };
      const source = natsPendingCalls({ current: () => bus });
      const own = (agentUid: string) => (agentUid === uid ? (agent as unknown as StoredAgent) : undefined);
      const deps = { source, agent: own, client, events, audit, clock: systemClock, log };
      await new CallRequests(deps).round(signal);
    },
    async request(request: string): Promise<ApprovalRequest> {
      await setup.operatorRound();
      const { status, body } = await fixture.plane.admin.call('GET', `${GROUP}/approvalrequests/${request}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body as unknown as ApprovalRequest;
    },
    async approve({ metadata, spec }: ApprovalRequest, call: object = {}, nonce = spec.nonce, decision = 'Approve') {
      keys += 1;
      await fixture.create(`${GROUP}/approvals`, {
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Approval',
        metadata: { name: `${metadata.name}-${keys}` },
        spec: {
          decision,
          nonce,
          request: metadata.name,
          approvedBy: { username: 'temper-admin' },
          subject: { call: { ...spec.subject.call, ...call } },
        },
      });
    },
    /** The observed records of the audit chain about a request. */
    async audited(request: string): Promise<string[]> {
      const records = await createNatsAudit(bus).all('team-a', 10_000);
      return records
        .filter(({ subject, evidence }) => subject === request && evidence === 'observed')
        .map(({ action, actor, facts }) => `${action} ${actor} ${textAt(facts, ['decision'], textAt(facts, ['by']))}`);
    },
    async lines(session: string): Promise<SessionStreamLine[]> {
      const path = `${MESSAGES}/${name}/sessions/${session}/events`;
      const { text } = await gateway.current.call('GET', path, { userToken });
      return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
    },
    async events(session: string): Promise<string[]> {
      return (await setup.lines(session)).flatMap((line) => ('event' in line ? [line.event.type] : []));
    },
  };
  await gateway.replace();
  await pollValue(
    `the gateway to know agent ${name}`,
    async () => (await gateway.current.call('GET', '/v1/assignment', { token })).status,
    (value) => value === 200,
  );
  const open = opening.move();
  return { ...setup, [Symbol.asyncDispose]: () => open.disposeAsync() };
}
