import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog of tables in memory that take MERGE, for Spark 4.3, which had no Delta or Iceberg.
 *
 * Each MERGE rewrites its whole table, and commits at once.
 */
public class MergeCatalog implements TableCatalog {
  private static final Map<String, MergeTable> TABLES = new ConcurrentHashMap<>();
  private String name;

  public void initialize(String name, CaseInsensitiveStringMap options) { this.name = name; }
  public String name() { return name; }
  public Identifier[] listTables(String[] namespace) { return new Identifier[0]; }
  public Table loadTable(Identifier table) throws NoSuchTableException {
    MergeTable found = TABLES.get(table.toString());
    if (found == null) throw new NoSuchTableException(table);
    return found;
  }
  public Table createTable(Identifier table, Column[] columns, Transform[] by, Map<String, String> properties) {
    MergeTable made = new MergeTable(table.toString(), columns);
    TABLES.put(table.toString(), made);
    return made;
  }
  public Table alterTable(Identifier table, TableChange... changes) { throw new UnsupportedOperationException(); }
  public boolean dropTable(Identifier table) { return TABLES.remove(table.toString()) != null; }
  public void renameTable(Identifier from, Identifier to) { throw new UnsupportedOperationException(); }

  record Rows(ArrayList<InternalRow> rows) implements InputPartition, WriterCommitMessage {}

  static class Reader implements PartitionReader<InternalRow> {
    private final Iterator<InternalRow> rows;
    private InternalRow row;
    Reader(Rows part) { rows = part.rows().iterator(); }
    public boolean next() { row = rows.hasNext() ? rows.next() : null; return row != null; }
    public InternalRow get() { return row; }
    public void close() {}
  }

  static class Readers implements PartitionReaderFactory {
    public PartitionReader<InternalRow> createReader(InputPartition part) { return new Reader((Rows) part); }
  }

  static class Writer implements DataWriter<InternalRow> {
    private final ArrayList<InternalRow> rows = new ArrayList<>();
    public void write(InternalRow row) { rows.add(row.copy()); }
    public WriterCommitMessage commit() { return new Rows(rows); }
    public void abort() {}
    public void close() {}
  }

  static class Writers implements DataWriterFactory {
    public DataWriter<InternalRow> createWriter(int partition, long task) { return new Writer(); }
  }

  static class MergeTable implements SupportsRead, SupportsRowLevelOperations {
    private final String name;
    private final Column[] columns;
    private volatile ArrayList<InternalRow> rows = new ArrayList<>();
    MergeTable(String name, Column[] columns) { this.name = name; this.columns = columns; }
    public String name() { return name; }
    public Column[] columns() { return columns; }
    public Set<TableCapability> capabilities() { return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE); }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      ArrayList<InternalRow> snapshot = rows;
      return () -> new Scan() {
        public StructType readSchema() { return CatalogV2Util.v2ColumnsToStructType(columns); }
        public Batch toBatch() {
          return new Batch() {
            public InputPartition[] planInputPartitions() { return new InputPartition[] {new Rows(snapshot)}; }
            public PartitionReaderFactory createReaderFactory() { return new Readers(); }
          };
        }
      };
    }

    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      return () -> new RowLevelOperation() {
        public Command command() { return info.command(); }
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
          return MergeTable.this.newScanBuilder(options);
        }
        public WriteBuilder newWriteBuilder(LogicalWriteInfo of) {
          return new WriteBuilder() {
            public Write build() {
              return new Write() {
                public BatchWrite toBatch() { return new Replacing(); }
              };
            }
          };
        }
      };
    }

    class Replacing implements BatchWrite {
      public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) { return new Writers(); }
      public void commit(WriterCommitMessage[] messages) {
        ArrayList<InternalRow> written = new ArrayList<>();
        for (WriterCommitMessage message : messages) written.addAll(((Rows) message).rows());
        rows = written;
      }
      public void abort(WriterCommitMessage[] messages) {}
    }
  }
}
