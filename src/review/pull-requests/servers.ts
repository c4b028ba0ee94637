import { createConnectionClient } from '../../connections/connection-client.ts';
import { connectionTransport } from './git-transport.ts';
import type { ConnectionOptions } from '../../connections/connection-transport.ts';
import type { GitConnection, HostedGitConnection } from '../../connections/connection.ts';
import { GitRemote } from '../../git/remote.ts';
import { encodedPath, RepositoryApi } from './api.ts';
import { gitRepository } from './git-repository.ts';
import { giteaServer } from './gitea.ts';
import { githubServer } from './github.ts';
import { gitlabServer } from './gitlab.ts';
import { hostedRepository } from './open-pull-request.ts';
import type { PullRequestServer, Repository } from './port.ts';

/** The repository of a connection. Keep it between looks: it remembers what it read last. */
export function repositoryOf(connection: GitConnection, options: ConnectionOptions): Repository {
  const { git } = connection;
  if (git.type !== 'Git') return hostedRepository(pullRequestServer({ ...connection, git }, options));
  const remote = new GitRemote(connectionTransport({ ...connection, git }, options), options.clock);
  return gitRepository(remote, git.url);
}

/** The interface of a server with pull requests. */
export function pullRequestServer(connection: HostedGitConnection, options: ConnectionOptions): PullRequestServer {
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
