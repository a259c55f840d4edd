import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import {
  composeContainers,
  declaredEntryPoints,
  environmentProblems,
  loadSchema,
  readCompose,
} from './environment.ts';
// Loading the services’ configuration compiles it first, which is slow.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../..');
const read = (path: string): string => readFileSync(join(WORKSPACE, path), 'utf8');
const CONTAINERS = readCompose(
  join(WORKSPACE, 'docker/compose.yaml'),
  join(WORKSPACE, 'docker/development.env'),
);

interface Service {
  build?: object;
  restart?: string;
  mem_limit?: string;
  healthcheck?: object;
  tmpfs?: string[];
  environment?: object;
  volumes?: string[];
  depends_on?: Record<string, unknown> | string[];
}

describe('docker/compose.yaml', () => {
  const compose = parse(read('docker/compose.yaml'), { merge: true }) as {
    services: Record<string, Service>;
  };
  const { services } = compose;

  it('conforms to the Compose Specification', () => {
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats.default(ajv);
    // The schema's dialect is draft 7, under a URL that ajv does not know.
    const { $schema: _dialect, ...schema } = JSON.parse(
      read('tools/manifests/compose-spec/compose-spec.json'),
    ) as Record<string, unknown>;
    const validate = ajv.compile(schema);
    validate(compose);
    expect(validate.errors ?? []).toEqual([]);
  });

  it('uses every variable of the environment file, and no other', () => {
    const defined = new Set(read('docker/development.env').match(/^\w+(?==)/gm));
    const used = new Set([...read('docker/compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    expect([...used].sort()).toEqual([...defined].sort());
  });

  it('waits only for services that exist', () => {
    const awaited = Object.values(services).flatMap(({ depends_on = [] }) =>
      Array.isArray(depends_on) ? depends_on : Object.keys(depends_on),
    );
    expect(awaited.filter((name) => !Object.hasOwn(services, name))).toEqual([]);
  });

  it('mounts only files that exist', () => {
    const mounted = Object.values(services)
      .flatMap(({ volumes = [] }) => volumes)
      .filter((volume) => volume.startsWith('.'))
      .map((volume) => join('docker', volume.split(':')[0]!));
    expect(mounted.length).toBeGreaterThan(0);
    expect(mounted.filter((path) => !existsSync(join(WORKSPACE, path)))).toEqual([]);
  });

  it('has a health check for each of our long-running containers: OCI images carry none', () => {
    const own = Object.entries(services).filter(([, { build, restart }]) => build && restart);
    expect(own.length).toBeGreaterThan(6);
    expect(own.filter(([, { healthcheck }]) => !healthcheck).map(([name]) => name)).toEqual([]);
  });

  it('restarts third-party servers, and limits their memory', () => {
    const servers = Object.entries(services).filter(([, { build }]) => !build);
    expect(servers.map(([name]) => name)).toEqual(expect.arrayContaining(['postgres', 'rabbitmq']));
    const bounded = servers.filter(([, { restart, mem_limit }]) => restart && mem_limit);
    expect(bounded).toEqual(servers);
  });

  it('sets no owner of a tmpfs, because some engines refuse it', () => {
    const options = Object.values(services).flatMap(({ tmpfs = [] }) => tmpfs);
    expect(options.length).toBeGreaterThan(0);
    expect(options.filter((option) => /uid=|gid=/.test(option))).toEqual([]);
  });

  it('loads the identities for the provider that auth-service uses', () => {
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
    'gives $name the environment that its configuration requires',
    async ({ app, entryPoint, variables }) => {
      const schema = await loadSchema(WORKSPACE, app, entryPoint);
      expect(environmentProblems({ variables, ingredients: new Set() }, schema)).toEqual([]);
    },
  );

  it('is refused with a missing variable, an unknown one, or a duplicate key', async () => {
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

describe('.dockerignore', () => {
  it('lets through what the Dockerfile copies, and nothing else', () => {
    const copied = [...read('docker/Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
      .flatMap(([, sources]) => sources!.split(' '))
      .flatMap((source) => (source === '${PROJECT_ROOT}' ? ['apps', 'tools/neighbours'] : [source]));
    const allowed = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path!);
    const contains = (folder: string, path: string): boolean =>
      path === folder || path.startsWith(`${folder}/`);
    expect(copied.filter((path) => !allowed.some((each) => contains(each, path)))).toEqual([]);
    expect(allowed.filter((each) => !copied.some((path) => contains(path, each)))).toEqual([]);
  });
});
