import { describeSchemaDrift } from '@platform/testing';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';

describeSchemaDrift({
  schema: SCHEMA,
  entities: ENTITIES,
  migrations: MIGRATIONS,
  ignored: [
    {
      matches: /^released_instances$/,
      because: 'it inherits from instances, and is read through that table',
    },
  ],
});
