/**
 * The program of an agent image that an attacker controls: it takes the place of `serve agent`, with the token of its pod. Each message
 * names what it does: `prepare`, `lie NUMBER`, `invent`, or `accuse AGENT SESSION DIGEST`. Its reply is what the gateway answered.
 */
import { POD_PATHS } from '../../../src/api/cluster.ts';
import { fetchAssignment } from '../../../src/gateway-client/assignment.ts';
import { RemoteBus, type RemoteDelivery } from '../../../src/gateway-client/bus.ts';
import { GatewayClient } from '../../../src/gateway-client/gateway-client.ts';
import { GatewayConfigFiles } from '../../../src/gateway-client/endpoints/gateway-config-files.ts';
import { systemClock as clock } from '../../../src/lib/clock.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { ulids as ids } from '../../../src/lib/ids.ts';
import { prepareSocketFolder, socketPaths } from '../../../src/pod/socket/socket-folder.ts';
import { markReady } from '../../../src/pod/ready-file.ts';
import { callOptions } from '../../support/call-options.ts';
import { type Answers, Liar } from './liar.ts';

const RETRY_MS = 500;
const POLL_MS = 20_000;
const log = { info: () => undefined, error: (fields: object) => console.error(fields) };

process.once('SIGTERM', () => process.exit(0));
const files = new GatewayConfigFiles({ folder: POD_PATHS.endpoints, tokenFile: POD_PATHS.gatewayToken, clock });
let liar: Liar | undefined;
const onAnswerSignature = (signature: string): void => liar?.signed(signature);
const client = new GatewayClient({ configFiles: files, clock, random: Math.random, onAnswerSignature });
await prepareSocketFolder(POD_PATHS.run, process.getuid?.() ?? 0);
const { agent } = await assigned();
liar = new Liar(client, agent);
await markReady(socketPaths(POD_PATHS.run).ready, true, log as never);
const bus = new RemoteBus({ client, clock, ids, deliveryToken: () => '' });
for (;;) await answerNext(liar);

async function assigned() {
  for (;;) {
    const found = await fetchAssignment(client, undefined, 1, callOptions()).catch(reported);
    if (found !== undefined) return found;
    await clock.sleep(RETRY_MS, new AbortController().signal);
  }
}

async function answerNext(teller: Liar): Promise<void> {
  const delivery = await bus.next(callOptions(POLL_MS)).catch(reported);
  if (delivery === undefined) return;
  const answers = await answersTo(teller, delivery).catch((error: unknown) => ({ failed: String(error) }));
  await delivery.ackWithReply(JSON.stringify(answers), 'complete', callOptions()).catch(reported);
}

function answersTo(teller: Liar, delivery: RemoteDelivery): Promise<Answers> {
  const [verb, number = '', session = '', digest = ''] = delivery.message.text.split(' ');
  if (verb === 'prepare') return teller.prepare(delivery);
  if (verb === 'accuse') return teller.accuse(delivery, { agent: number, session, digest });
  return verb === 'lie' ? teller.lie(delivery, Number(number)) : teller.invent(delivery);
}

/** The kubelet keeps it; a wait that ended without a message is none. */
function reported(error: unknown): undefined {
  if (!isTemperError(error, 'TEMPER_TIMEOUT')) console.error(error);
  return undefined;
}
