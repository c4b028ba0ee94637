import { createHash } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const HASH_LENGTH = 16;
/** The pod name is also the host name, which has at most 63 characters. */
const MAX_LENGTH = 63;

/**
 * The name of an agent's next pod. It depends only on stored data, the agent and its currently bound pod. So an operator that restarts in
 * the middle of a replacement computes the same name and does not create a second pod.
 */
export function podName(agent: { name: string; uid: string }, boundPodUid: string | undefined): string {
  const hash = base32(
    createHash('sha256')
      .update(`${agent.uid}\n${boundPodUid ?? ''}`)
      .digest(),
  );
  const prefix = agent.name.slice(0, MAX_LENGTH - HASH_LENGTH - 1).replace(/[-.]+$/, '');
  return `${prefix}-${hash}`;
}

/** The name of a warm pod. */
export function warmPodName(className: string, unique: string): string {
  const hash = base32(createHash('sha256').update(unique).digest());
  const prefix = `warm-${className}`.slice(0, MAX_LENGTH - HASH_LENGTH - 1).replace(/[-.]+$/, '');
  return `${prefix}-${hash}`;
}

function base32(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET[(value >> bits) & 31];
      if (text.length === HASH_LENGTH) return text;
    }
    value &= (1 << bits) - 1;
  }
  return text;
}
