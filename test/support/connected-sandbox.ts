import { RoleProcess } from '../../src/pod/pod.testing.ts';
import { poll } from './poll.ts';

/** Starts the sandbox role and waits until it has connected: on a busy machine its process starts later than a call waits for it. */
export async function connectedSandbox(
  link: { readonly connected: boolean },
  options: readonly string[],
): Promise<RoleProcess> {
  const role = new RoleProcess('sandbox', options);
  const ended = role.failure.then((error) => {
    throw error ?? new Error('the sandbox role has ended');
  });
  ended.catch(() => undefined);
  try {
    await Promise.race([poll('the connection of the sandbox container', () => link.connected), ended]);
    return role;
  } catch (error) {
    await role.end('SIGKILL');
    throw error;
  }
}
