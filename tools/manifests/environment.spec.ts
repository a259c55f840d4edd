import { join } from 'node:path';
import {
  SCHEMA_PLACES,
  containerEnvironment,
  declaredEntryPoints,
  environmentProblems,
  loadSchema,
  sampleSecret,
} from './environment.ts';
import type { ConfigSchema, ContainerEnvironment } from './environment.ts';
import { containers, splitImage, title, workloads } from './kubernetes-object.ts';
import type { Container, KubernetesObject } from './kubernetes-object.ts';
import { renderAll } from './renderings.ts';
// Loading the services’ configuration compiles it first, which is slow.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../..');

interface Case {
  readonly where: string;
  readonly app: string;
  readonly entryPoint: string;
  readonly container: Container;
  readonly objects: KubernetesObject[];
}

const CASES: Case[] = renderAll(WORKSPACE).flatMap(({ folder, objects }) =>
  workloads(objects).flatMap(({ object, pod }) =>
    containers(pod).map((container) => ({
      where: `${folder} ${title(object)}`,
      app: splitImage(container.image).repository.split('/').at(-1) ?? '',
      entryPoint: container.command?.[1]?.replace(/\.js$/, '') ?? 'main',
      container,
      objects,
    })),
  ),
);

/**
 * Returns a container's environment with sample values for its required secrets, and for its optional secrets
 * if `withOptional`.
 */
function environmentOf({ container, objects }: Case, withOptional: boolean): ContainerEnvironment {
  const optional = new Set(
    (container.env ?? [])
      .filter(({ valueFrom }) => valueFrom?.secretKeyRef?.optional === true)
      .map(({ name }) => name),
  );
  return containerEnvironment(container, objects, (_secret, _key, variable) =>
    optional.has(variable) && !withOptional ? undefined : sampleSecret(variable),
  );
}

function without(environment: ContainerEnvironment, name: string): ContainerEnvironment {
  const { [name]: _, ...variables } = environment.variables;
  return { ...environment, variables };
}

describe('the environment of the pods', () => {
  const schemas = new Map<string, ConfigSchema>();
  const schemaOf = (each: Pick<Case, 'app' | 'entryPoint'>): ConfigSchema => {
    const schema = schemas.get(`${each.app} ${each.entryPoint}`);
    if (schema === undefined) throw new Error(`${each.app} has no entry point ${each.entryPoint}`);
    return schema;
  };

  beforeAll(async () => {
    for (const [app, entryPoints] of Object.entries(declaredEntryPoints(WORKSPACE)))
      for (const entryPoint of entryPoints)
        schemas.set(`${app} ${entryPoint}`, await loadSchema(WORKSPACE, app, entryPoint));
  });

  it('has a schema for every entry point of every service', () => {
    const places = Object.entries(SCHEMA_PLACES).map(([app, places]) => [app, Object.keys(places).sort()]);
    const declared = Object.entries(declaredEntryPoints(WORKSPACE)).map(([app, names]) => [
      app,
      names.sort(),
    ]);
    expect(places.sort()).toEqual(declared.sort());
  });

  it('is rendered for every entry point of every service', () => {
    const rendered = new Set(CASES.map(({ app, entryPoint }) => `${app} ${entryPoint}`));
    expect([...rendered].sort()).toEqual([...schemas.keys()].sort());
  });

  it.each(CASES)('matches the configuration schema: $where', (each) => {
    for (const withOptional of [false, true])
      expect(environmentProblems(environmentOf(each, withOptional), schemaOf(each))).toEqual([]);
  });

  it.each(CASES)('is refused without a required variable: $where', (each) => {
    const schema = schemaOf(each);
    const environment = environmentOf(each, false);
    const required = Object.keys(environment.variables).filter((name) => isRequired(schema, name));
    // Migration and administration accept either of two addresses, so neither is required.
    expect(required.length).toBeGreaterThanOrEqual(each.entryPoint === 'main' ? 8 : 0);
    for (const name of required)
      expect(environmentProblems(without(environment, name), schema)).toContain(`${name} is required`);
  });

  it.each(CASES.filter(({ entryPoint }) => entryPoint === 'main'))(
    'is refused with an unknown variable or an invalid value: $where',
    (each) => {
      const environment = environmentOf(each, false);
      const spoilt = { ...environment.variables, TOKEN_ISUER: 'x', PORT: 'http', DATABASE_POOL_SIZE: '0' };
      const problems = environmentProblems({ ...environment, variables: spoilt }, schemaOf(each));
      expect(problems).toHaveLength(3);
      expect(problems[0]).toBe('no schema knows TOKEN_ISUER');
      expect(problems.join()).toMatch(/PORT .*DATABASE_POOL_SIZE /s);
    },
  );

  it('never holds credentials of the owner of the tables in a service', () => {
    const services = CASES.filter(({ entryPoint }) => entryPoint === 'main');
    const seen = services.flatMap((each) => Object.keys(environmentOf(each, true).variables));
    expect(seen.filter((name) => name.includes('MIGRATION'))).toEqual([]);
  });
});

describe('containerEnvironment', () => {
  const secret = (): string => 'secret';
  const container = (env: Container['env']): Container => ({ name: 'c', image: 'i', ...(env && { env }) });

  it('refuses a variable that is set twice', () => {
    const twice = container([
      { name: 'A', value: '1' },
      { name: 'A', value: '2' },
    ]);
    expect(() => containerEnvironment(twice, [], secret)).toThrow('A is set twice');
  });

  it('refuses a reference to a later variable, which Kubernetes would not expand', () => {
    const late = container([
      { name: 'A', value: 'x$(B)' },
      { name: 'B', value: '2' },
    ]);
    expect(() => containerEnvironment(late, [], secret)).toThrow('no earlier variable is called B');
  });

  it('refuses a ConfigMap or a required key that does not exist', () => {
    const lost = { name: 'c', image: 'i', envFrom: [{ configMapRef: { name: 'gone' } }] };
    expect(() => containerEnvironment(lost, [], secret)).toThrow('there is no ConfigMap gone');
    const key = container([{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'K' } } }]);
    expect(() => containerEnvironment(key, [], () => undefined)).toThrow('there is no K in s');
  });
});

function isRequired(schema: ConfigSchema, name: string): boolean {
  const field = schema.shape[name];
  return field !== undefined && !field.safeParse(undefined).success;
}
