import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from '../../../src/api/cluster.ts';
import type { VerificationWork } from '../../../src/gateway-api/verification/verification-schemas.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import type { Json, JsonObject } from '../../../src/lib/json.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { createVerifications, type Verifications } from '../../../src/nats/promotion/verifications.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createSourceCipher, type SourceKeyring } from '../../../src/nats/sources/source-cipher.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { runVerification } from '../../../src/pod/verifier/verification.ts';
import type { Sandbox } from '../../../src/sandbox/port.ts';
import type { CaseOutputs } from '../../../src/tempering/verification/verification-case.ts';
import { callOptions } from '../call-options.ts';
import { RELEASE_NAMESPACE } from '../api-server/api-server-fixture.ts';
import { FollowedObjects } from '../api-server/followed-objects.ts';

const INTERVAL_MS = 20;

/** What a simulated verifier sends for its work; undefined: nothing yet. */
export type Behaviour = (work: VerificationWork, pod: Pod) => Json | undefined | Promise<Json | undefined>;

/**
 * Stands in for the containers of verifier pods: sends what `behaviour` makes of each round of an assigned pod, once, through what the
 * gateway's routes use. Returns the UIDs of the pods that had work.
 */
export function simulateVerifiers(
  transport: Transport,
  gateway: JetStreamConnection,
  sourceKeys: Readonly<SourceKeyring>,
  behaviour: () => Behaviour,
  signal: AbortSignal,
): { served: string[]; ended: Promise<void> } {
  const verifications = createVerifications(gateway, createSourceCipher(sourceKeys, systemClock));
  const served: string[] = [];
  const serve = async (pod: Pod, gone: AbortSignal): Promise<void> => {
    const { uid = '' } = pod.metadata;
    for (let round = 0; !gone.aborted; ) {
      // The servers may be down for a while. Again while NATS is away, as a pod repeats its request.
      const isSent = await serveRound({ verifications, behaviour }, pod, round, gone).catch(() => false);
      if (!isSent) await sleep(INTERVAL_MS, undefined, { signal: gone }).catch(() => undefined);
      else if (round === 0) served.push(uid);
      if (isSent) round += 1;
    }
  };
  const run = async (): Promise<void> => {
    const selection = { type: TYPES.pods, namespace: RELEASE_NAMESPACE, labelSelector: LABELS.verification };
    await using pods = new FollowedObjects<Pod>(transport, selection);
    const serving = new Map<string, { gone: AbortController; ended: Promise<void> }>();
    while (!signal.aborted) {
      const living = new Map(pods.list().map((pod) => [pod.metadata.uid ?? '', pod]));
      for (const [uid, { gone }] of serving) if (!living.has(uid)) gone.abort();
      for (const [uid, pod] of living) {
        if (serving.has(uid)) continue;
        const gone = new AbortController();
        serving.set(uid, { gone, ended: serve(pod, AbortSignal.any([signal, gone.signal])) });
      }
      await pods.changed(1_000, signal);
    }
    await Promise.all([...serving.values()].map(({ ended }) => ended));
  };
  return { served, ended: run() };
}

/** False when the pod sends nothing yet. */
async function serveRound(
  { verifications, behaviour }: { verifications: Verifications; behaviour: () => Behaviour },
  pod: Pod,
  round: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { uid = '' } = pod.metadata;
  const work = await verifications.waitForWork(uid, round, signal);
  if (work === undefined) return false;
  const outputs = await behaviour()(JSON.parse(work.toString()) as VerificationWork, pod);
  if (outputs === undefined) return false;
  await verifications.putOutputs(uid, round, outputs);
  return true;
}

/** Runs every case in the sandbox, with the code of a verifier pod. */
export function sandboxedOutputs(sandbox: Sandbox): Behaviour {
  return async (work) => {
    const op = callOptions(60_000);
    return (await runVerification(work, { sandbox, clock: systemClock }, op)) as unknown as Json;
  };
}

/** Runs every case as the function does, and every call of a probe. */
export function honestOutputs(run: (input: never) => Json): Behaviour {
  return ({ attempt, round, cases }) => {
    const outputs = cases.map(({ input }): CaseOutputs => {
      const output = { ok: true, output: probed(input, run) ?? run(input as never) } as const;
      return [output, output];
    });
    return { attempt, round, outputs } as unknown as Json;
  };
}

function probed({ calls, inputs }: JsonObject, run: (input: never) => Json): Json | undefined {
  if (!Array.isArray(calls) || !Array.isArray(inputs)) return undefined;
  const results = calls.map((call) => {
    const text = JSON.stringify(run(inputs[Number((call as number[])[1])] as never));
    return { text, failed: false, mutated: false, work: 1 };
  });
  return { results };
}
