import { createConnectionClient } from '../../connections/connection-client.ts';
import type { GitConnection } from '../../connections/connection.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Network } from '../../net/dialer.ts';
import { encodedPath, RepositoryApi } from './api.ts';
import { giteaServer } from './gitea.ts';
import { githubServer } from './github.ts';
import { gitlabServer } from './gitlab.ts';
import type { PullRequestServer } from './port.ts';

/** The repository of a connection. */
export function pullRequestServer(
  connection: GitConnection,
  options: { clock: Clock; network?: Network },
): PullRequestServer {
  const { type, repository } = connection.git;
  const client = createConnectionClient(connection, options);
  switch (type) {
    case 'GitHub':
      return githubServer(new RepositoryApi(client, connection, `repos/${encodedPath(repository)}`), repository);
    case 'GitLab':
      return gitlabServer(new RepositoryApi(client, connection, `projects/${encodeURIComponent(repository)}`));
    case 'Gitea':
      return giteaServer(new RepositoryApi(client, connection, `repos/${encodedPath(repository)}`));
  }
}
