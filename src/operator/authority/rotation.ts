import { type KeyPair, createAuthority, isDue, readCertificate } from './certificates.ts';

/** The authority as it is kept. The next one is trusted a while before it signs, the one before as long as it lives. */
export interface AuthorityState {
  readonly current: KeyPair;
  readonly next?: KeyPair;
  readonly previous?: string;
}

const DAY = 86_400_000;
const AUTHORITY_LIFE = 5 * 365 * DAY;
/** Long enough for every pod to have the new bundle: the kubelet takes minutes to bring a changed ConfigMap. */
const ANNOUNCED_FOR = 3_600_000;
const NAME = 'temper authority';

/** The next state of the authority; the same object when there is nothing to do. What cannot be read begins anew. */
export async function rotated(state: AuthorityState | undefined, now: Date): Promise<AuthorityState> {
  const current = readCertificate(state?.current.certificate);
  if (state === undefined || current === undefined || current.notAfter <= now) {
    return { current: await createAuthority(NAME, now, AUTHORITY_LIFE) };
  }
  const next = readCertificate(state.next?.certificate);
  if (state.next !== undefined && next !== undefined) {
    if (now.getTime() - next.notBefore.getTime() < ANNOUNCED_FOR) return state;
    return { current: state.next, previous: state.current.certificate };
  }
  if (isDue(current, now)) return { ...state, next: await createAuthority(NAME, now, AUTHORITY_LIFE) };
  const previous = readCertificate(state.previous);
  if (state.previous === undefined || (previous !== undefined && previous.notAfter > now)) return state;
  return { current: state.current };
}

/** What clients trust: whoever signs, signed or will sign. */
export function bundleOf({ current, next, previous }: AuthorityState): string {
  return [current.certificate, next?.certificate, previous].filter((text) => text !== undefined).join('');
}
