import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import {
  composeContainers,
  declaredEntryPoints,
  environmentProblems,
  loadSchema,
  readCompose,
} from './environment.ts';
// Loading the services’ configuration compiles it first.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../..');
const CONTAINERS = readCompose(
  join(WORKSPACE, 'docker/compose.yaml'),
  join(WORKSPACE, 'docker/development.env'),
);

interface ComposeFile {
  services: Record<
    string,
    { build?: object; restart?: string; healthcheck?: object; tmpfs?: string[]; environment?: object }
  >;
}

describe('docker/compose.yaml', () => {
  const { services } = parse(readFileSync(join(WORKSPACE, 'docker/compose.yaml'), 'utf8'), {
    merge: true,
  }) as ComposeFile;

  it('checks the health of everything of ours that stays: OCI images carry no check', () => {
    const own = Object.entries(services).filter(([, { build, restart }]) => build && restart);
    expect(own.length).toBeGreaterThan(6);
    expect(own.filter(([, { healthcheck }]) => !healthcheck).map(([name]) => name)).toEqual([]);
  });

  it('names no owner of a tmpfs, which some engines refuse', () => {
    const options = Object.values(services).flatMap(({ tmpfs = [] }) => tmpfs);
    expect(options.length).toBeGreaterThan(0);
    expect(options.filter((option) => /uid=|gid=/.test(option))).toEqual([]);
  });

  it('loads the identities of the provider that auth-service asks', () => {
    const { 'auth-service': service, 'development-identities': identities } = services;
    expect(identities?.environment).toHaveProperty(
      'OPENID_ISSUER',
      (service?.environment as Record<string, string>)['OPENID_ISSUER'],
    );
  });

  it('runs every service and its migration', () => {
    const run = CONTAINERS.map(({ app, entryPoint }) => `${app} ${entryPoint}`);
    const needed = Object.keys(declaredEntryPoints(WORKSPACE)).flatMap((app) => [
      `${app} main`,
      `${app} migrate`,
    ]);
    expect(run).toEqual(expect.arrayContaining(needed));
  });

  it.each(CONTAINERS)(
    'gives $name what its configuration asks for',
    async ({ app, entryPoint, variables }) => {
      const schema = await loadSchema(WORKSPACE, app, entryPoint);
      expect(environmentProblems({ variables, ingredients: new Set() }, schema)).toEqual([]);
    },
  );

  it('is told from one that gives too little or too much', async () => {
    const text = `
services:
  settings-migrate:
    build: { args: { APP: settings-service } }
    command: [node, migrate.js]
    environment: { MIGRATION_DATABASE: 'postgres://\${PASSWORD:?}@db/x' }
`;
    const [container] = composeContainers(text, 'PASSWORD=secret');
    const schema = await loadSchema(WORKSPACE, 'settings-service', 'migrate');
    const variables = container?.variables ?? {};
    expect(variables).toEqual({ MIGRATION_DATABASE: 'postgres://secret@db/x' });
    expect(environmentProblems({ variables, ingredients: new Set() }, schema)).toEqual([
      'no schema knows MIGRATION_DATABASE',
      'DATABASE_URL is required',
    ]);
    expect(() => composeContainers(text, '')).toThrow('the environment file has no PASSWORD');
    expect(() => composeContainers(`services: {}\n${text}`, '')).toThrow(/unique/);
  });
});
