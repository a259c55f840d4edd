import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';

const WORKSPACE = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(WORKSPACE, path), 'utf8');

interface Service {
  environment?: Record<string, string | number>;
  build?: { args: { APP?: string } };
  command?: string[];
  volumes?: string[];
  depends_on?: Record<string, unknown> | string[];
}

const compose = parse(read('docker/compose.yaml'), { merge: true }) as { services: Record<string, Service> };
const services = Object.entries(compose.services);

/** The variables that a service's configuration schema, or one of its programs, names. */
function knownVariables(app: string): Set<string> {
  const files = [
    `apps/${app}/src/config.ts`,
    'libs/service-defaults/src/config/config.ts',
    'libs/service-defaults/src/paging/paging.ts',
    'libs/access-tokens/src/keys/token-settings.ts',
    // Everybody trusts auth-service but itself.
    ...(app === 'auth-service' ? [] : ['libs/access-tokens/src/keys/token-settings.ts']),
    'libs/database/src/migrate.ts',
    'apps/auth-service/src/load-development-identities.ts',
    'apps/auth-service/src/development/load-identities.ts',
    'apps/auth-service/src/migrations/migration-settings.ts',
    'apps/auth-service/src/keys/sealing-keys.ts',
  ];
  return new Set(
    files.flatMap((file) => read(file).match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b(?:HOST|PORT)\b/g) ?? []),
  );
}

describe('docker/compose.yaml', () => {
  it('is what the Compose Specification says', () => {
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats.default(ajv);
    // Its dialect is draft 7 under an address that ajv does not know.
    const { $schema: _dialect, ...schema } = JSON.parse(
      read('tools/observability/compose-spec/compose-spec.json'),
    ) as Record<string, unknown>;
    const validate = ajv.compile(schema);
    validate(parse(read('docker/compose.yaml'), { merge: true }));
    expect(validate.errors ?? []).toEqual([]);
  });

  it('finds a value for every variable that it asks of the environment file', () => {
    const given = new Set(read('docker/development.env').match(/^\w+(?==)/gm));
    const asked = new Set([...read('docker/compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    expect([...asked].filter((name) => !given.has(name as string))).toEqual([]);
    expect([...given].filter((name) => !asked.has(name))).toEqual([]);
  });

  it.each(services.filter(([, { build }]) => build?.args.APP !== undefined))(
    'gives %s no variable that it does not know',
    (_name, { build, environment = {} }) => {
      const known = knownVariables(build?.args.APP as string);
      expect(Object.keys(environment).filter((variable) => !known.has(variable))).toEqual([]);
    },
  );

  it('waits only for services that there are', () => {
    const names = services.map(([name]) => name);
    const awaited = services.flatMap(([, { depends_on = [] }]) =>
      Array.isArray(depends_on) ? depends_on : Object.keys(depends_on),
    );
    expect(awaited.filter((name) => !names.includes(name))).toEqual([]);
  });

  it('mounts only files that there are', () => {
    const files = services
      .flatMap(([, { volumes = [] }]) => volumes)
      .filter((volume) => volume.startsWith('.'));
    for (const volume of files) {
      const path = join('docker', volume.split(':')[0] as string);
      expect({ path, exists: existsSync(join(WORKSPACE, path)) }).toEqual({ path, exists: true });
    }
  });
});

describe('.dockerignore', () => {
  it('lets through what the Dockerfile copies, and nothing else', () => {
    const copied = [...read('docker/Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
      .flatMap(([, sources]) => (sources as string).split(' '))
      .flatMap((source) => (source === '${PROJECT_ROOT}' ? ['apps', 'tools/neighbours'] : [source]));
    const allowed = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path as string);
    expect(
      copied.filter((path) => !allowed.some((each) => path === each || path.startsWith(`${each}/`))),
    ).toEqual([]);
    expect(
      allowed.filter((each) => !copied.some((path) => path === each || path.startsWith(`${each}/`))),
    ).toEqual([]);
  });
});
