import { rm } from 'node:fs/promises';
import { POLL_GRACE_MS } from '../../gateway-client/assignment.ts';
import { GatewayClient } from '../../gateway-client/gateway-client.ts';
import { GatewayConfigFiles } from '../../gateway-client/endpoints/gateway-config-files.ts';
import {
  POD_API_PATHS,
  type ToolAuditWork,
  type VerificationOutputs,
  type VerificationWork,
} from '../../gateway-api/pod-api.ts';
import { MAX_ROUNDS } from '../../gateway-api/verification/verification-limits.ts';
import { requireList, requireObject, requireText } from '../../gateway-api/response-parsing.ts';
import { whenAborted } from '../../lib/async/abort.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Json } from '../../lib/json.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Logger } from '../../telemetry/log.ts';
import { VERIFICATION_TIMEOUT_MS } from '../../tempering/verification/verification-case.ts';
import { SandboxConnection } from '../agent/sandbox-connection.ts';
import { ErrorReporter } from '../error-reporter.ts';
import { markReady } from '../ready-file.ts';
import { prepareSocketFolder, socketPaths } from '../socket/socket-folder.ts';
import { runAudit } from './audit.ts';
import { runVerification } from './verification.ts';

export interface VerifierRoleOptions {
  /** Folder with the gateway's address, TLS server name and CA certificate. */
  endpoints: string;
  tokenFile: string;
  /** Volume that both containers of the pod mount. */
  run: string;
  /** The user this process runs as. */
  uid: number;
  clock: Clock;
  ids: IdGenerator;
  random: () => number;
  log: Logger;
  /** Ends the role. */
  signal: AbortSignal;
}

const POLL_SECONDS = 25;
/** Pause between attempts when the gateway is unavailable or rejects this pod. */
const RETRY_MS = 1_000;
/** Of the request that sends the outputs, retries included: the operator would start a late verification again from its beginning. */
const SEND_TIMEOUT_MS = VERIFICATION_TIMEOUT_MS;

interface Verifier {
  options: VerifierRoleOptions;
  client: GatewayClient;
  sandbox: SandboxConnection;
  setAccepted: (accepted: boolean) => void;
}

/**
 * The verifier container: waits for one verification, runs the cases of its rounds in the sandbox container and sends the outputs. It runs
 * no second verification: the operator deletes the pod, so nothing that a tool leaves behind meets another tool. Throws TEMPER_POD_INVALID
 * when the pod is not set up correctly; while the gateway is unavailable, it retries.
 */
export async function serveVerifier(options: VerifierRoleOptions): Promise<void> {
  const { run, uid, clock, random, log, signal } = options;
  await using open = new AsyncDisposableStack();
  await prepareSocketFolder(run, uid);
  const paths = socketPaths(run);
  const readiness = { accepted: false, connected: false };
  const update = (change: Partial<typeof readiness>): void => {
    Object.assign(readiness, change);
    void markReady(paths.ready, readiness.accepted && readiness.connected, log);
  };
  open.defer(() => rm(paths.ready, { force: true }));
  const onChange = (connected: boolean, reason: string): void => {
    log.info({ connected, reason }, 'sandbox');
    update({ connected });
  };
  const sandbox = open.use(await SandboxConnection.listen(paths.socket, { clock, onChange }));
  const configFiles = new GatewayConfigFiles({ folder: options.endpoints, tokenFile: options.tokenFile, clock });
  const client = open.use(new GatewayClient({ configFiles, clock, random }));
  const verifier = { options, client, sandbox, setAccepted: (accepted: boolean) => update({ accepted }) };
  for (let round = 0; round <= MAX_ROUNDS && !signal.aborted; round += 1) {
    const work = await waitForWork(verifier, round);
    if (work === undefined) continue;
    if ('audit' in work) await audit(verifier, work);
    else await verify(verifier, work);
  }
  await whenAborted(signal);
}

/** Long-polls until the operator assigns the round; undefined when the signal aborts first. */
async function waitForWork(
  { options, client, setAccepted }: Verifier,
  round: number,
): Promise<VerificationWork | ToolAuditWork | undefined> {
  const { signal, ids, clock, log } = options;
  const errors = new ErrorReporter(log, 'cannot get a verification from the gateway');
  // The first request does not wait: the gateway's response makes the pod ready.
  let waitSeconds = round === 0 ? 0 : POLL_SECONDS;
  while (!signal.aborted) {
    try {
      const op = { signal, deadline: clock.monotonic() + POLL_SECONDS * 2_000, key: ids.next('verification') };
      const response = await client.call({
        method: 'GET',
        path: POD_API_PATHS.verification,
        query: { wait: String(waitSeconds), round: String(round) },
        op,
        timeoutMs: waitSeconds * 1_000 + POLL_GRACE_MS,
      });
      errors.clear();
      // Only a pod without work is Ready.
      setAccepted(round === 0);
      waitSeconds = POLL_SECONDS;
      if (response !== undefined) return workIn(response);
    } catch (error) {
      if (signal.aborted) return undefined;
      errors.report(error);
      await clock.sleep(RETRY_MS, signal).catch(() => undefined);
    }
  }
  return undefined;
}

async function verify({ options, client, sandbox, setAccepted }: Verifier, work: VerificationWork): Promise<void> {
  const { signal, clock, log } = options;
  const { attempt, round, cases } = work;
  log.info({ attempt, round, cases: cases.length }, 'verification');
  const op: CallOptions = { signal, deadline: clock.monotonic() + VERIFICATION_TIMEOUT_MS, key: attempt };
  const outputs = await runVerification(work, { sandbox, clock }, op);
  if (signal.aborted) return;
  await sendOutputs({ options, client }, outputs);
  setAccepted(false);
  log.info({ attempt, round, outputs: outputs.outputs.length }, 'outputs sent');
}

/** One session of a fresh agent. A failure that says nothing about the task leaves the audit without a result; the operator then ends it. */
async function audit({ options, client, sandbox, setAccepted }: Verifier, work: ToolAuditWork): Promise<void> {
  const { signal, clock, log } = options;
  const { attempt, round } = work;
  log.info({ attempt, round }, 'audit of a tool');
  try {
    const body = await runAudit(work, { sandbox, clock, client }, signal);
    const op: CallOptions = { signal, deadline: clock.monotonic() + SEND_TIMEOUT_MS, key: `${attempt}-${round}` };
    await client.call({ method: 'POST', path: POD_API_PATHS.verificationAudit, body, op });
  } catch (error) {
    if (!signal.aborted) log.error({ error, attempt, round }, 'a session of an audit failed');
  }
  setAccepted(false);
}

/** A gateway that does not accept them leaves the verification without outputs; the operator then starts another. */
async function sendOutputs(
  { options, client }: Pick<Verifier, 'options' | 'client'>,
  body: VerificationOutputs,
): Promise<void> {
  const { signal, clock, log } = options;
  const op: CallOptions = { signal, deadline: clock.monotonic() + SEND_TIMEOUT_MS, key: body.attempt };
  try {
    await client.call({ method: 'POST', path: POD_API_PATHS.verificationOutputs, body, op });
  } catch (error) {
    if (!signal.aborted) log.error({ error, attempt: body.attempt }, 'the gateway did not accept the outputs');
  }
}

/** Checks only the members that a run reads first. */
function workIn(response: Json): VerificationWork | ToolAuditWork {
  const work = requireObject(response, 'verification');
  requireText(work, 'attempt', 'verification');
  if (work['audit'] !== undefined) {
    const audited = requireObject(work['audit'], 'verification.audit');
    requireText(audited, 'task', 'verification.audit');
    requireObject(audited['agent'], 'verification.audit.agent');
    requireList(audited['tools'], 'verification.audit.tools');
    return work as unknown as ToolAuditWork;
  }
  requireObject(work['artifact'], 'verification.artifact');
  requireList(work['dependencies'], 'verification.dependencies');
  requireList(work['cases'], 'verification.cases');
  return work as unknown as VerificationWork;
}
