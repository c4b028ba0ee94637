import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { hasErrno, TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { isJsonObject, type Json, parseUntrustedJson } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import type { RecordStore } from '../lib/record-store.ts';

/**
 * A pending decision of a user. A CLI process writes it atomically as one file in `decisions/`. The process that holds the state
 * folder applies it and then removes the file; a crash in between repeats it, which is harmless because decisions are idempotent.
 */
export interface UserDecision {
  id: string;
  verb: 'Approve' | 'Deny' | 'Demote' | 'Reactivate';
  /** Name of the ApprovalRequest, or name or digest of the tool. */
  target: string;
  reason: string;
  /** The owner of the file. */
  by: string;
  /** RFC 3339. */
  time: string;
}

const COLLECTION = 'decisions';
const INVALID = 'decisions-invalid';
const MAX_FILE_BYTES = 65_536;
/** Longer reasons are cut. */
const MAX_REASON = 4_096;
/** The name of a request is the name of its file. */
const REQUEST_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/;
const TOOL_NAME = /^[A-Za-z0-9_][A-Za-z0-9._:/-]{0,252}$/;
const ROOT_UID = 0;

/** Stores a decision of the user of this process. The file does not name the user: the owner of the file decides. */
export async function submitDecision(
  records: RecordStore,
  decision: Omit<UserDecision, 'id' | 'by' | 'time'>,
  deps: { clock: Clock; ids: IdGenerator },
): Promise<UserDecision> {
  const { verb, target } = decision;
  const reason = decision.reason.slice(0, MAX_REASON);
  const id = deps.ids.next('decision');
  const time = deps.clock.now().toISOString();
  await records.put(COLLECTION, id, { id, verb, target, reason, time });
  return { id, verb, target, reason, by: userName(process.geteuid?.()), time };
}

/**
 * Applies the pending decisions of a state folder, oldest first. A file that is no valid decision of this user or of root is moved to
 * `decisions-invalid/` and reported; it does not block the others. `uid`: the user of this process.
 */
export async function applyDecisions(
  state: string,
  apply: (decision: UserDecision) => Promise<void>,
  onInvalid: (problem: TemperError) => void = () => undefined,
  uid: number | undefined = process.geteuid?.(),
): Promise<void> {
  const folder = join(state, COLLECTION);
  for (const name of await decisionNames(folder)) {
    const decision = await readDecision(join(folder, name), name.slice(0, -'.json'.length), uid);
    if (decision === undefined) {
      await mkdir(join(state, INVALID), { recursive: true, mode: 0o700 });
      await rename(join(folder, name), join(state, INVALID, name));
      onInvalid(invalid(name));
    } else {
      await apply(decision);
      await rm(join(folder, name), { force: true });
    }
  }
}

/** Applies the pending decisions of the user about these requests, oldest first, and leaves all other files. */
export async function applyDecisionsAbout(
  state: string,
  requests: ReadonlySet<string>,
  apply: (decision: UserDecision) => Promise<void>,
): Promise<void> {
  const folder = join(state, COLLECTION);
  for (const name of requests.size === 0 ? [] : await decisionNames(folder)) {
    const decision = await readDecision(join(folder, name), name.slice(0, -'.json'.length), process.geteuid?.());
    const isAnswer = decision?.verb === 'Approve' || decision?.verb === 'Deny';
    if (decision === undefined || !isAnswer || !requests.has(decision.target)) continue;
    await apply(decision);
    await rm(join(folder, name), { force: true });
  }
}

async function decisionNames(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Undefined for anything but a small file of this user or of root with a valid decision. Follows no link and waits for no pipe. */
async function readDecision(file: string, id: string, uid: number | undefined): Promise<UserDecision | undefined> {
  let handle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stats = await handle.stat();
    const isAccepted = uid === undefined || stats.uid === uid || stats.uid === ROOT_UID;
    if (!stats.isFile() || stats.size > MAX_FILE_BYTES || !isAccepted) return undefined;
    return parseDecision(id, parseUntrustedJson(await handle.readFile('utf8')), userName(stats.uid));
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

function parseDecision(id: string, value: Json, by: string): UserDecision | undefined {
  const { verb, target, reason, time } = isJsonObject(value) ? value : {};
  if (verb !== 'Approve' && verb !== 'Deny' && verb !== 'Demote' && verb !== 'Reactivate') return undefined;
  const isAboutTool = verb === 'Demote' || verb === 'Reactivate';
  if (typeof target !== 'string' || !(isAboutTool ? TOOL_NAME : REQUEST_NAME).test(target)) return undefined;
  if (typeof reason !== 'string' || reason.length > MAX_REASON) return undefined;
  if (typeof time !== 'string' || Number.isNaN(Date.parse(time))) return undefined;
  return { id, verb, target, reason, by, time };
}

/** `user/NAME`, or `user/uid-N` for a user without a known name. */
export function userName(uid: number | undefined): string {
  try {
    const user = userInfo();
    if (uid === undefined || user.uid === uid) return `user/${printable(user.username, 64)}`;
  } catch {
    // The system has no entry of this user, as in many containers.
  }
  return uid === ROOT_UID ? 'user/root' : `user/uid-${uid}`;
}

function invalid(file: string): TemperError {
  return new TemperError(
    'TEMPER_STATE_CORRUPT',
    `decisions/${printable(file, 260)} is not a valid decision of yours; it was moved to decisions-invalid/ and not applied`,
  );
}
