import { repositoryOfConnection } from '../../gateway/git/connected-repository.ts';
import { systemClock } from '../../lib/clock.ts';
import type { RepositoriesOf } from '../../standalone/team/host-tools.ts';
import { MAX_CLONE_BYTES } from '../../toolbox/git/clone/checked-clone.ts';
import { repositoryAddress } from '../../toolbox/git/remote/port.ts';
import { secretOf, type TokenOf } from './reach-host.ts';
import type { UserConnection } from './read-connections.ts';

/** The repositories that connections of the user name. Undefined when none does. */
export function gitRepositories(connections: readonly UserConnection[], token: TokenOf): RepositoriesOf | undefined {
  const named = connections.flatMap((own) => (own.git === undefined ? [] : [{ own, git: own.git }]));
  if (named.length === 0) return undefined;
  return ({ fetchWith }) => {
    const repositories = new Map(
      named.map(({ own, git }) => {
        const repository = repositoryOfConnection(
          { ...own, private: own.isPrivate },
          { ...git, pushDefaultBranch: git.mayPushDefaultBranch },
          {
            clock: systemClock,
            secret: () => secretOf(own, token),
            fetchWith: (limits) => fetchWith({ ...limits, maxBodyBytes: MAX_CLONE_BYTES }),
          },
        );
        return [repositoryAddress(git.url), repository];
      }),
    );
    return { find: (url) => repositories.get(repositoryAddress(url)) };
  };
}
