import { describeSchemaDrift } from '@platform/testing';
import { SCHEMAS, STORE_SCHEMAS } from '../src/migrations/schemas';

const STORE_ENTITIES = new Set(Object.values(STORE_SCHEMAS).flatMap(({ settings }) => settings.entities));
const STORES: readonly string[] = Object.values(STORE_SCHEMAS).map(({ settings }) => settings.schema);

for (const { settings } of SCHEMAS) {
  const { schema, migrations } = settings;
  // The service's data source knows the stores' entities too.
  const entities = STORES.includes(schema)
    ? settings.entities
    : settings.entities.filter((entity) => !STORE_ENTITIES.has(entity));
  describeSchemaDrift({ schema, entities, migrations });
}
