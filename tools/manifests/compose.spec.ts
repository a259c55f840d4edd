import { join } from 'node:path';
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

describe('docker/compose.yaml', () => {
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
