package springprobe;

/** A payload that the starter turns into JSON and back. */
public record Order(String id, int pieces) {
}
